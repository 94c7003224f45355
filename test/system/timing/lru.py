"""A plain LRU that is fed with the lookups of a log, and says where the log does not agree."""


class Cache:
    """@sets of @ways; lines that are pinned are never the victim."""

    def __init__(self, sets, ways):
        self.ways = ways
        self.sets = [[] for _ in range(sets)]  # least recently looked up first
        self.pins = {}
        self.hits = self.misses = 0

    def has(self, number):
        return number in self.sets[number % len(self.sets)]

    def look_up(self, number):
        """True, and as the most recent; or the victim, "-" when there was room."""
        lines = self.sets[number % len(self.sets)]
        if number in lines:
            lines.remove(number)
            lines.append(number)
            self.hits += 1
            return True
        self.misses += 1
        victim = "-"
        if len(lines) == self.ways:
            victim = next(line for line in lines if not self.pins.get(line))
            lines.remove(victim)
        lines.append(number)
        return victim

    def drop(self, number):
        lines = self.sets[number % len(self.sets)]
        if number in lines:
            lines.remove(number)


class Lookup:
    """A line of the log: of the PTE cache "time unit number ...", of the context cache "time type op number ..."."""

    def __init__(self, line):
        words = line.split()
        self.text = line
        self.at_ps = int(words[0])
        self.unit = words[1]
        self.op = words[2] if len(words) == 8 else "look_up"
        self.number, self.result, self.set, victim, host = words[-5:]
        self.number, self.set, self.host = int(self.number), int(self.set), int(host)
        self.victim = victim if victim == "-" else int(victim)
        self.counts = self.result in ("hit", "merge", "miss") and self.op != "flush"


def replay(lines, geometry, since_ps=0, until_ps=float("inf")):
    """
    Feed the log's @lines to a cache for each (host, unit) of @geometry {unit: (sets, ways)}. Returns the lines that do not
    fit, and {(host, unit): [hits or merges, misses]} after @since_ps and until @until_ps.
    """
    caches = {(host, unit): Cache(*size) for host in (0, 1) for unit, size in geometry.items()}
    counts = {key: [0, 0] for key in caches}
    wrong = []
    for lookup in map(Lookup, lines):
        cache = caches.get((lookup.host, lookup.unit))
        if cache is None:
            continue
        if lookup.number % len(cache.sets) != lookup.set:
            wrong.append(f"{lookup.text}: set")
        if lookup.counts:
            found = cache.look_up(lookup.number)
            is_hit = lookup.result != "miss"
            if (found is True) != is_hit or (not is_hit and found != lookup.victim):
                wrong.append(f"{lookup.text}: reference says {found}")
            if since_ps < lookup.at_ps <= until_ps:
                counts[lookup.host, lookup.unit][0 if is_hit else 1] += 1
            if lookup.op == "acquire":
                cache.pins[lookup.number] = cache.pins.get(lookup.number, 0) + 1
        elif lookup.op == "release":
            cache.pins[lookup.number] -= 1
        elif lookup.op == "flush" or lookup.op == "look_up":
            cache.drop(lookup.number)
    return wrong, counts
