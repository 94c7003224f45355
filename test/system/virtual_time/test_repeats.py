#!/usr/bin/python3
"""What programs in virtual time print, the capture and the report's result are the same bytes whatever the circumstances.

Without RN_LONG each command runs plainly and under two of the other circumstances in turn."""

import itertools

from circumstances import HARD, NAMES, RepeatTest, circumstance, main, runs

PINGPONGS = [f"ibv_rc_pingpong -g 0 -n {1000 if runs.LONG else 100}{options}" for options in ("", " -e")]
# perftest refuses -q for the latency tests: they have one queue pair.
LATENCIES = [f"ib_{verb}_lat -F -n {300 if runs.LONG else 40}" for verb in ("write", "read", "send")]
BANDWIDTHS = [f"ib_{verb}_bw -F -s 4096 -n {1000 if runs.LONG else count}{options}" for verb in ("write", "read", "send")
              for options, count in (("", 200), (" -q 8", 200))]
LANES = [f"{runs.program('verbs_lanes')} -n {100 if runs.LONG else 20} {options}" for options in ("-T 3", "-C 1", "-C 2 -e")]
PAIRS = [(command, command + " localhost") for command in PINGPONGS + LATENCIES + BANDWIDTHS + LANES]
OTHERS = [(runs.program("threads_and_children"), "sleep 3; echo one | cat; date +%s")]
COMMANDS = PAIRS + OTHERS


def chosen():
    """(names of circumstances, commands): all, or as many that each command and each circumstance has its turn."""
    if runs.LONG:
        return [(NAMES + HARD, commands) for commands in COMMANDS]
    turns = itertools.cycle(NAMES[1:])
    return [((NAMES[0], next(turns), next(turns)), commands) for commands in COMMANDS]


class Repeats(RepeatTest):
    def test_same_bytes_under_all_circumstances(self):
        missing = set()
        for names, commands in chosen():
            with self.subTest(commands=commands[0], names=names):
                missing.update(self.assert_repeats(commands, names))
        if missing:
            print("not tried: " + "; ".join(sorted(missing)))

    def test_latency_tools_of_perftest_refuse_several_queue_pairs(self):
        """So one queue pair is all there is to compare for them."""
        for verb in ("write", "read", "send"):
            result = self.run_virtual(f"ib_{verb}_lat -F -q 8 -n 20", "true", status=None, capture=False)
            self.assertNotEqual(result.status, 0, str(result))
            self.assertIn("Multiple QPs only available on bw tests", result.text)

    def test_other_runs_at_the_same_time_do_not_show(self):
        commands = COMMANDS[2]
        with circumstance("plain") as place:
            alone = self.outcome(commands, place)
            with runs.ThreadPoolExecutor(3) as pool:
                together = list(pool.map(lambda _: self.outcome(commands, place), range(3)))
        for outcome in together:
            self.assertTrue(outcome.virtual["deterministic"], outcome.virtual)
            self.assertEqual(alone.differences(outcome), [])

    def test_seed_changes_packet_numbers(self):
        """The comparison can fail: another seed gives other first PSNs and another capture."""
        commands = ("ib_write_bw -F -s 4096 -n 20", "ib_write_bw -F -s 4096 -n 20 localhost")
        with circumstance("plain") as place:
            one, other = (self.outcome(commands, place, ["--set", f"seed={seed}"]) for seed in (1, 2))
        self.assertNotEqual(one.frames, other.frames)
        self.assertTrue(one.differences(other))


if __name__ == "__main__":
    main()
