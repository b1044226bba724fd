"""MkDocs: the pages of the repository's root join those of docs/, and links between them lead to the site's pages."""

import itertools
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
FROM_ROOT = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changes.md"}
"""Page of the root: its page of the site."""
OUTSIDE = "\0"  # marks a link that leads out of the site, until the second pass
DRAWING = re.compile(r"^```mermaid\n(.*?)^```$", re.M | re.S)
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of the root."""
    for source, target in FROM_ROOT.items():
        text = relinked((ROOT / source).read_text("utf-8"), ROOT, at_root=True)
        files.append(File.generated(config, target, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Rewrite the links of a page that lead out of docs/."""
    markdown = DRAWING.sub(lambda match: drawn(match[1]), markdown)
    if page.file.src_uri in FROM_ROOT.values():
        return markdown
    return relinked(markdown, (Path(config["docs_dir"]) / page.file.src_uri).parent, at_root=False)


def relinked(markdown: str, folder: Path, *, at_root: bool) -> str:
    """Return a page with links that hold on the site. `folder`: where the page lies in the repository.

    A link to a file that is no page, such as a script of examples/, becomes the name of the file.
    """

    def replaced(match: re.Match[str]) -> str:
        target, anchor = match[1], match[2] or ""
        if "://" in target:
            return match[0]
        place = (folder / target).resolve()
        if place.is_relative_to(ROOT / "docs"):
            return f"]({place.relative_to(ROOT / 'docs')}{anchor})" if at_root else match[0]
        name = str(place.relative_to(ROOT))
        if name in FROM_ROOT:
            up = "" if at_root else "../" * len(folder.relative_to(ROOT / "docs").parts)
            return f"]({up}{FROM_ROOT[name]}{anchor})"
        return f"]{OUTSIDE}({name})"

    text = LINK.sub(replaced, markdown)
    return re.sub(rf"\[([^\]]*)\]{OUTSIDE}\(([^)]*)\)", r"\1 (`\2`)", text)


def drawn(text: str) -> str:
    """Return a mermaid flowchart of layers as HTML: the library that draws it would be loaded from the network."""
    boxes = dict(re.findall(r'^ *(\w+)\["(.+)"\]$', text, re.M))
    depth = dict.fromkeys(boxes, 0)
    for line in (line for line in text.splitlines() if "-->" in line):
        groups = [re.findall(r"\w+", part) for part in line.split("-->")]
        for upper, lower in itertools.pairwise(groups):
            for name in lower:
                depth[name] = max(depth[name], *(depth[one] + 1 for one in upper))
    rows = [[boxes[n] for n in boxes if depth[n] == level] for level in range(max(depth.values()) + 1)]
    cell = '<div style="flex: 1; border: 1px solid; border-radius: 4px; padding: .3em; margin: .2em">{}</div>'
    line = '<div style="display: flex; flex-wrap: wrap; text-align: center">{}</div>'
    return "\n".join(line.format("".join(map(cell.format, row))) for row in rows)
