"""View -> one self-contained HTML page."""


def render(view) -> str:
    return "<html></html>"
