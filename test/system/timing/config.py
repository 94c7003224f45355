"""The effective configuration, as `rnicsim config show` prints it, and runs of scripted_run with it."""

import json
import os
import re
import subprocess
import tempfile

BUILD = os.environ.get("RN_BUILD_DIR", "build/release")
RNICSIM = os.path.join(BUILD, "bin", "rnicsim")
SCRIPTED_RUN = os.path.join(BUILD, "bin", "test", "scripted_run")
ROW = re.compile(r"^( *)(- )?([a-z_0-9]+):(?: ([^#\s]\S*))? *(?:# (?:\[[^\]]*\] )?(.*))?$")
RANGE = re.compile(r"^(\d+) to (\d+)(?: ([^;]*))?;")


class Row:
    """A parameter: its path as of --set, value, range and unit."""

    def __init__(self, path, value, help_text):
        found = RANGE.match(help_text or "")
        self.path = path
        self.value = value
        self.least, self.most = (int(found[1]), int(found[2])) if found else (None, None)
        self.unit = (found[3] or "") if found else ""

    @property
    def host(self):
        parts = self.path.split(".")
        return int(parts[1]) if parts[0] == "hosts" else None

    @property
    def name(self):
        """Without host and profile: "dma.tags", "root_complex.read_latency_ps", "fabric.link_mbps"."""
        return ".".join(self.path.split(".")[-2:])


def _value(text):
    return {"true": True, "false": False}.get(text, int(text) if text.isdigit() else text)


def _parse(text):
    rows, stack, host = [], [], -1
    for line in text.splitlines():
        found = ROW.match(line)
        if not found:
            continue
        depth = len(found[1]) + len(found[2] or "")
        while stack and stack[-1][0] >= depth:
            stack.pop()
        if found[2]:
            host += 1
            stack = [(0, "hosts"), (1, str(host))]
        if found[4] is None:
            stack.append((depth, found[3]))
        else:
            path = ".".join([name for _, name in stack] + [found[3]])
            rows.append(Row(path, _value(found[4]), found[5]))
    return rows


def is_legal(settings):
    command = [RNICSIM, "config", "check"]
    for setting in settings:
        command += ["--set", setting]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


class Section(dict):
    __getattr__ = dict.__getitem__


class Config:
    """fabric, and hosts with the sections of their profiles: config.host[0].dma.tags."""

    def __init__(self, settings=()):
        command = [RNICSIM, "config", "show"]
        for setting in settings:
            command += ["--set", setting]
        self.settings = list(settings)
        self.rows = _parse(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        self.fabric = Section()
        self.host = [Section(), Section()]
        for row in self.rows:
            self.put(row.path, row.value)

    def put(self, path, value):
        parts = path.split(".")
        if parts[0] == "fabric":
            self.fabric[parts[1]] = value
        elif parts[0] == "hosts" and len(parts) > 3:
            self.host[int(parts[1])].setdefault(parts[-2], Section())[parts[-1]] = value

    def with_value(self, row, value):
        """The same with one parameter changed, as --set does it, without asking again."""
        other = Config.__new__(Config)
        other.settings = self.settings + [f"{row.path}={str(value).lower()}"]
        other.rows = self.rows
        other.fabric = Section(self.fabric)
        other.host = [Section({k: Section(v) for k, v in h.items()}) for h in self.host]
        other.put(row.path, value)
        return other


def run(settings, *arguments, report=False, logs=()):
    """scripted_run's object; with @report its report's result, with @logs lines of "lookup" or "tlp"."""
    with tempfile.TemporaryDirectory() as folder:
        command = [SCRIPTED_RUN] + [str(a) for a in arguments]
        for setting in settings:
            command += ["--set", setting]
        if report:
            command += ["--report", os.path.join(folder, "report")]
        for log in logs:
            command += [f"--{log}-log", os.path.join(folder, log)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.returncode}: {done.stderr}")
        result = json.loads(done.stdout)
        if report:
            with open(os.path.join(folder, "report"), encoding="utf-8") as file:
                result["report"] = json.load(file)["result"]
        for log in logs:
            with open(os.path.join(folder, log), encoding="utf-8") as file:
                result[log] = file.read().splitlines()
        return result
