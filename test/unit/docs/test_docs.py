#!/usr/bin/python3
"""The documentation's links, paths and pages against the source tree."""

import os
import re
import tempfile
import unittest

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
# A path of the source tree in backquotes; "<" and "*" mark places to be filled in.
PATH = re.compile(r"`((?:model|host-shim|tools|configs|test|docs|rtl|traces)/[\w./-]*)`")
HEADING = re.compile(r"^#+ (.*)$", re.M)
# Sections of a NIC profile that are no unit: what software sees, and the fifos between the units.
NO_UNIT = {"device", "nic", "unit"}
# A page of a unit outside the NIC; that of the PCIe link has the root complex too.
OUTSIDE = {"fabric"}


def pages(root):
    """Every Markdown file of the tree, as a path relative to root."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f != "build")
        for name in sorted(names):
            if name.endswith(".md"):
                yield os.path.relpath(os.path.join(folder, name), root)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as stream:
        return stream.read()


def without_code(text):
    """Indented and fenced blocks left out: brackets there are no links."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    return "\n".join(line for line in text.splitlines() if not line.startswith("    "))


def anchors(text):
    """The anchors that a Markdown viewer makes of the headings."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(text)}


def broken_links(root):
    broken = []
    for page in pages(root):
        for target in LINK.findall(without_code(read(root, page))):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            full = os.path.normpath(os.path.join(root, os.path.dirname(page), path)) if path else os.path.join(root, page)
            if not os.path.exists(full):
                broken.append(f"{page}: {target}: no such file")
            elif anchor and full.endswith(".md") and anchor not in anchors(read(root, os.path.relpath(full, root))):
                broken.append(f"{page}: {target}: no such heading")
    return broken


def missing_paths(root):
    return [f"{page}: `{path}` is not there" for page in pages(root) for path in PATH.findall(read(root, page))
            if not os.path.exists(os.path.join(root, path))]


def unreachable_pages(root):
    """Pages that no chain of links from README.md leads to; a link to a folder leads to all in it."""
    every, seen, todo = set(pages(root)), set(), ["README.md"]
    while todo:
        page = todo.pop()
        if page in seen or page not in every:
            continue
        seen.add(page)
        for target in LINK.findall(without_code(read(root, page))):
            path = os.path.normpath(os.path.join(os.path.dirname(page), target.partition("#")[0] or os.path.basename(page)))
            todo += [other for other in every if other == path or other.startswith(path + os.sep)]
    return sorted(every - seen)


def sections(root, folder):
    """Top-level keys of the profiles in configs/<folder>."""
    found = set()
    for name in os.listdir(os.path.join(root, "configs", folder)):
        found |= set(re.findall(r"^(\w+):", read(root, os.path.join("configs", folder, name)), re.M))
    return found


class Documentation(unittest.TestCase):
    maxDiff = None

    def test_every_link_leads_somewhere(self):
        self.assertEqual(broken_links(ROOT), [])

    def test_every_path_that_is_named_exists(self):
        self.assertEqual(missing_paths(ROOT), [])

    def test_every_page_can_be_reached_from_the_readme(self):
        self.assertEqual(unreachable_pages(ROOT), [])

    def test_every_unit_has_its_page_and_every_page_its_unit(self):
        written = {name[:-3] for name in os.listdir(os.path.join(ROOT, "docs", "blocks"))
                   if name.endswith(".md") and name != "README.md"}
        self.assertEqual(written, (sections(ROOT, "nic") - NO_UNIT) | OUTSIDE)

    def test_every_block_of_the_nic_has_its_section(self):
        folder = os.path.join(ROOT, "model", "nic")
        blocks = {name for name in os.listdir(folder) if os.path.isdir(os.path.join(folder, name))} - {"msg"}
        self.assertEqual(blocks - sections(ROOT, "nic"), set())

    def test_decisions_are_numbered_and_complete(self):
        names = sorted(name for name in os.listdir(os.path.join(ROOT, "docs", "adr")) if re.match(r"\d{4}-", name))
        self.assertEqual([int(name[:4]) for name in names], list(range(1, len(names) + 1)))
        for name in names:
            with self.subTest(name=name):
                headings = HEADING.findall(read(ROOT, os.path.join("docs", "adr", name)))
                self.assertTrue(headings[0].startswith(f"{int(name[:4])}. "), headings[0])
                self.assertEqual(headings[1:], ["Context", "Decision", "Consequences"])


class Checks(unittest.TestCase):
    """The checks above find what they look for."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = self.folder.name

    def write(self, path, text):
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as stream:
            stream.write(text)

    def test_a_dead_link_and_a_dead_heading_are_found(self):
        self.write("README.md", "[a](docs/a.md) [b](docs/a.md#one-two) [c](docs/b.md) [d](docs/a.md#three) [e](https://x.org/y)\n")
        self.write("docs/a.md", "# One, two\n[up](../README.md) [here](#one-two) [nowhere](#three)\n    [code](none.md)\n")
        self.assertEqual(broken_links(self.root), [
            "README.md: docs/b.md: no such file", "README.md: docs/a.md#three: no such heading",
            "docs/a.md: #three: no such heading"])

    def test_a_path_that_is_not_there_is_found(self):
        self.write("README.md", "`model/a.c` `model/b.c` `model/<block>` `elsewhere/a.c`\n")
        self.write("model/a.c", "")
        self.assertEqual(missing_paths(self.root), ["README.md: `model/b.c` is not there"])

    def test_an_orphan_is_found(self):
        self.write("README.md", "[a](docs/a.md) [folder](docs/sub/)\n")
        for name in ("a", "b", "sub/c"):
            self.write(f"docs/{name}.md", "# x\n")
        self.assertEqual(unreachable_pages(self.root), ["docs/b.md"])


if __name__ == "__main__":
    unittest.main()
