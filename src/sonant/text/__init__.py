"""Text before it is sound: segment → normalize → phonemize, every step with its place in the original text.

english.py is the front end of English voices. Nothing here knows a model or audio; importing does no work.
"""
