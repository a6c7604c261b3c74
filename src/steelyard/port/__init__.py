"""Two existing models, unmodified: are they the same function, and if not, where do they part, and why?"""
