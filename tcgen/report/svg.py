"""Scalable vector graphics as text: elements, escaped text, numbers of a fixed form."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from ..resources import template_text


def number(value: float) -> str:
    """A coordinate with at most one digit after the point.

    Example:
        >>> number(3.0), number(2.26)
        ('3', '2.3')
    """
    return f"{value:.1f}".removesuffix(".0")


def element(name: str, /, *inner: str, **attributes: str | float) -> str:
    """An element; ``_`` in an attribute's name stands for ``-``, a last one is dropped.

    Example:
        >>> element("text", "A &lt; B", x=2.5, class_="label")
        '<text x="2.5" class="label">A &lt; B</text>'
    """
    shown = "".join(
        f" {key.removesuffix('_').replace('_', '-')}="
        + quoteattr(value if isinstance(value, str) else number(value))
        for key, value in attributes.items()
    )
    return f"<{name}{shown}>{''.join(inner)}</{name}>" if inner else f"<{name}{shown}/>"


def label(text: str, x: float, y: float, kind: str) -> str:
    """A line of text."""
    return element("text", escape(text), x=x, y=y, class_=kind)


def drawing(width: float, height: float, title: str, *inner: str, **attributes: str) -> str:
    """A drawing with a title for screen readers."""
    return element(
        "svg",
        element("title", escape(title)),
        *inner,
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=width,
        height=height,
        role="img",
        **attributes,
    )


def as_file(svg: str) -> str:
    """A drawing as a file of its own, with the styles that a page gives it."""
    head, end, rest = svg.removeprefix("<svg").partition(">")
    style = element("style", "\n", template_text("report/figures.css"))
    return f'<svg xmlns="http://www.w3.org/2000/svg"{head}{end}{style}{rest}\n'
