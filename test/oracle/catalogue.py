"""The runs of the oracle: every program, operation, fault role, fabric, geometry and unit, each a name and what to run.

A scripted run has no processes and takes tenths of a second; a run of programs takes a second or two."""

PROGRAM_PORT = "-p {port}"


class Run:
    """One entry: @scripted are arguments of scripted_run; else @commands are those of the hosts under `rnicsim run`.

    @settings are --set of either kind; @units, of programs, what stands for hardware units."""

    def __init__(self, name, scripted=None, commands=(), settings=(), options=(), is_short=False):
        self.name, self.scripted, self.commands = name, scripted, tuple(commands)
        self.settings, self.options = tuple(settings), tuple(options)
        self.is_short = is_short  # among those that every test run makes


def pair(program):
    return (f"{program} {PROGRAM_PORT}", f"{program} {PROGRAM_PORT} localhost")


def fault(action, frame_class, host, transmission=1):
    return ("faults=[{" + f"action: {action}, class: {frame_class}, host: {host}, transmission: {transmission}"
            + (", delay_ps: 20000000" if action == "delay" else "") + "}]",)


def all_nics(*settings):
    return tuple(f"hosts.*.{setting}" for setting in settings)


def scripted_operations():
    for operation in ("write", "read", "send"):
        for size in (1, 64, 1024, 4096, 70000):
            yield Run(f"scripted-{operation}-{size}", f"--op {operation} --bytes {size} --count 40 --depth 8",
                      is_short=size in (64, 70000))
    yield Run("scripted-inline", "--bytes 64 --count 60 --inline", is_short=True)
    yield Run("scripted-blueflame", "--bytes 32 --count 60 --depth 1 --inline --blueflame", is_short=True)
    yield Run("scripted-unsignalled", "--bytes 512 --count 64 --depth 32 --signal-every 8")
    yield Run("scripted-64-qps", "--bytes 2048 --count 8 --qps 64 --depth 4", is_short=True)
    yield Run("scripted-mtu-256", "--bytes 5000 --count 20 --mtu 256")
    yield Run("scripted-one-read", "--op read --bytes 8192 --count 20 --rd-atomic 1")


# Geometries at which fifos fill, caches miss and tags run out.
GEOMETRIES = {
    "one-tag": all_nics("nic.dma.tags=1"),
    "narrow-link": all_nics("nic.pcie.lanes=1", "nic.pcie.gen=1"),
    "small-mrrs": all_nics("nic.pcie.mrrs_bytes=128", "nic.pcie.mps_bytes=128"),
    "fifos-of-one": all_nics(*(f"nic.nic.{fifo}_fifo_depth=1" for fifo in (
        "ring", "work", "recv", "context", "pte", "tlp", "dma_req", "dma_rsp", "completion", "event"))),
    "slow-core": all_nics("nic.nic.core_hz=100000000"),
    "small-wqe-cache": all_nics("nic.wqe_fetch.cache_sets=1", "nic.wqe_fetch.cache_ways=1"),
    "slow-memory": all_nics("host.root_complex.read_latency_ps=2000000", "host.root_complex.memory_gbps=20"),
}


def scripted_geometries():
    for name, settings in GEOMETRIES.items():
        for operation in ("write", "read", "send"):
            yield Run(f"scripted-{name}-{operation}", f"--op {operation} --bytes 3000 --count 20 --qps 3 --depth 6",
                      settings=settings, is_short=operation == "write")


PROGRAMS = [
    ("pingpong", "ibv_rc_pingpong -g 0 -n 60 -c"),
    ("pingpong-events", "ibv_rc_pingpong -g 0 -n 60 -e"),
    ("pingpong-ipv6", "ibv_rc_pingpong -g 1 -n 60 -m 1024 -s 10000"),
    ("write-lat", "ib_write_lat -F -n 40"),
    ("read-lat", "ib_read_lat -F -n 40"),
    ("send-lat", "ib_send_lat -F -n 40"),
    ("write-bw", "ib_write_bw -F -n 100"),
    ("write-bw-8-qps", "ib_write_bw -F -n 60 -s 2048 -q 8"),
    ("read-bw", "ib_read_bw -F -n 60"),
    ("send-bw", "ib_send_bw -F -n 60"),
    ("send-bw-bidirectional", "ib_send_bw -F -n 60 -b -s 8192"),
    ("write-bw-small", "ib_write_bw -F -n 300 -s 8"),
    ("verify", "{programs}/rc_verify -n 1 -s 0,1,64,1025,5000"),
    ("verify-events", "{programs}/rc_verify -n 1 -e -i -u -k 2 -s 0,1,64,3000"),
    ("verify-late-receives", "{programs}/rc_verify -l 5 -o send,write_imm -n 1 -s 64,5000"),
    ("verify-psn-wrap", "{programs}/rc_verify -P 0xfffffe -n 1 -s 5000"),
    ("errors", "{programs}/rc_errors"),
    ("lanes-threads", "{programs}/verbs_lanes -n 10 -T 3"),
    ("lanes-children", "{programs}/verbs_lanes -n 10 -C 2 -e"),
]
SHORT_PROGRAMS = {"pingpong", "write-lat", "send-bw", "verify-events", "errors"}


def programs():
    for name, command in PROGRAMS:
        yield Run(name, commands=pair(command), is_short=name in SHORT_PROGRAMS)
    yield Run("devices-on-a-switch", commands=("ibv_devinfo -v",) * 4, options=("-c", "scenarios/four-hosts-switch.yaml"))
    yield Run("two-pairs-on-a-switch", options=("-c", "scenarios/four-hosts-switch.yaml"), commands=(
        "ib_write_bw -F -n 40 -p {port}", "ib_write_bw -F -n 40 -p {port} host0",
        "ib_read_bw -F -n 40 -p {port}", "ib_read_bw -F -n 40 -p {port} host2"))


VERIFY = pair("{programs}/rc_verify -n 1 -s 3000 -m 1024 -o send,write,read")
ROLES = (("request_first", 1), ("request_middle", 1), ("request_last", 1), ("request_only", 1), ("ack", 0),
         ("read_request", 1), ("read_response_first", 0), ("read_response_middle", 0), ("read_response_last", 0))


def fault_roles():
    for frame_class, host in ROLES:
        for action in ("drop", "corrupt", "duplicate", "delay"):
            commands = pair("{programs}/rc_verify -n 1 -s 64 -o send,write") if frame_class == "request_only" else VERIFY
            yield Run(f"{action}-{frame_class}", commands=commands, settings=fault(action, frame_class, host),
                      is_short=(action, frame_class) in (("drop", "request_middle"), ("drop", "ack")))


def units():
    for mode in ("rtl", "lockstep"):
        for unit in ("doorbell", "pte_cache"):
            yield Run(f"{unit}-in-{mode}", commands=pair("ib_write_bw -F -n 20 -s 8192 -q 2"),
                      options=("--unit", f"{unit}={mode}"), is_short=mode == "rtl")


RUNS = [run for family in (scripted_operations, scripted_geometries, programs, fault_roles, units) for run in family()]
