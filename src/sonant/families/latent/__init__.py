"""What Phonon and Pocket TTS share beyond the layers: text front end, frame rules."""
