"""Word times as captions: SubRip, WebVTT, LRC and Praat's TextGrid. Knows words and their times, no audio, no model."""
