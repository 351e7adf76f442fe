"""A page as tests read it."""

import base64
import json
from html.parser import HTMLParser

import numpy as np
from plotly.offline import get_plotlyjs

DTYPES = {"f4": "<f4", "f8": "<f8", "i4": "<i4", "u1": "|u1"}

NASTY = [
    "<script>window.hacked = 1</script>",
    "</script><script>window.hacked = 2</script>",
    "<!-- <script>",
    "]]> \" ' ` \\",
    "😀🎉 e\u0301",
    "nul\0nul\x1b\x7f",
    "a\u2028b\u2029c\r\nd",
    "\u202eright to left\u2066",
    "שלום مرحبا",
    '<b>bold</b><br><a href="javascript:window.hacked = 3">a</a>',
    "%{x} %{customdata} %{text}",
    "x" * 10_000,
    "\ud800 alone",
    "{{ 7 * 7 }} {% raw %} {# #}",
    "<img src=x onerror='window.hacked = 4'>",
    "&amp;&lt;b&gt; &#0;",
    "=cmd|' /C calc'!A0",
    "__proto__",
    "",
    "   ",
]


class Page(HTMLParser):
    """A page: its elements, its text outside scripts, and the data of its charts."""

    def __init__(self, path):
        super().__init__(convert_charrefs=True)
        # Plotly, 4.5 MB of which no test reads, would take most of the time.
        self.source = path.read_text("utf-8").replace(get_plotlyjs(), "")
        self.tags, self.words, self.inside, self.blocks = [], [], [], []
        self.feed(self.source)
        self.text = " ".join("".join(self.words).split())
        self.data = json.loads(next(b for a, b in self.blocks if a.get("id") == "data"))

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.words.append(" ")
        if tag in ("script", "style"):
            self.inside.append(tag)
            self.blocks.append([dict(attrs), ""])

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            self.inside.pop()

    def handle_data(self, data):
        if self.inside:
            self.blocks[-1][1] += data
        else:
            self.words.append(data)

    def count(self, tag):
        return sum(name == tag for name, _ in self.tags)


def numbers(packed):
    return np.frombuffer(base64.b64decode(packed["data"]), DTYPES[packed["dtype"]])
