"""Figures of published networks for references that are written by hand; our own implementations do not use them."""

# GoogLeNet (Szegedy et al. 2015, table 1), channels of every block at width 64: 1x1; 1x1, 3x3; 1x1, 3x3 (or 5x5); after the
# pool. A single number is the window of a max pool.
GOOGLENET = (
    (64, 96, 128, 16, 32, 32),
    (128, 128, 192, 32, 96, 64),
    3,
    (192, 96, 208, 16, 48, 64),
    (160, 112, 224, 24, 64, 64),
    (128, 128, 256, 24, 64, 64),
    (112, 144, 288, 32, 64, 64),
    (256, 160, 320, 32, 128, 128),
    2,
    (256, 160, 320, 32, 128, 128),
    (384, 192, 384, 48, 128, 128),
)
