/*
 * Contents in the form of Linux's drivers (Documentation/ABI/stable/sysfs-class-infiniband, testing/sysfs-class-net). The
 * device sits on a PCI domain that no machine has, so its folders hide none.
 */
#include "preload/files/table.h"

#include <arpa/inet.h>
#include <net/if.h>

#include "preload/files/facts.h"
#include "preload/interfaces.h"

#define MELLANOX_OUI 0x02c9 /* the vendor id of verbs; on PCI the same maker is 0x15b3 */
#define MELLANOX_PCI 0x15b3
#define UVERBS_MAJOR 231 /* Linux's, as is the first minor */
#define UVERBS_MINOR 192
#define UVERBS_ABI "6\n"
#define DEVICE_ABI "1\n"

#define BUS "/sys/devices/pci1000:00"
#define SLOT "1000:00:00.0"
#define PCI BUS "/" SLOT
#define IB PCI "/infiniband/@"
#define PORT IB "/ports/1"
#define UVERBS PCI "/infiniband_verbs/%"
#define NET PCI "/net/$"

const char *const rn_files_roots[] = {
	"/sys/class/infiniband", "/sys/class/infiniband_verbs", "/sys/class/infiniband_mad",
	"/sys/class/net",	 "/sys/bus/pci/devices/" SLOT,	BUS,
	"/dev/infiniband",	 "/proc/sys/kernel/hostname",	NULL,
};

/* --- the host --- */

static bool print_host_name(FILE *out, const struct rn_facts *facts, unsigned index)
{
	(void)index;
	return fprintf(out, "%s\n", facts->host_name) > 0;
}

/* --- the PCI function --- */

static bool print_pci_vendor(FILE *out, const struct rn_facts *facts, unsigned index)
{
	const unsigned id = facts->attr.vendor_id;

	(void)index;
	return fprintf(out, "0x%04x\n", id == MELLANOX_OUI ? MELLANOX_PCI : id & 0xffff) > 0;
}

static bool print_pci_device(FILE *out, const struct rn_facts *facts, unsigned index)
{
	(void)index;
	return fprintf(out, "0x%04x\n", facts->attr.vendor_part_id & 0xffff) > 0;
}

static bool print_pci_revision(FILE *out, const struct rn_facts *facts, unsigned index)
{
	(void)index;
	return fprintf(out, "0x%02x\n", facts->attr.hw_ver & 0xff) > 0;
}

/* All processors are as near as any other. */
static bool copy_first_line(FILE *out, const char *path)
{
	FILE *in = fopen(path, "re");
	char line[4096];
	const bool ok = in && fgets(line, sizeof(line), in) && fputs(line, out) >= 0;

	if (in)
		fclose(in);
	return ok;
}

static bool print_processors(FILE *out, const struct rn_facts *facts, unsigned index)
{
	(void)facts;
	(void)index;
	return copy_first_line(out, "/sys/devices/system/cpu/online");
}

/* --- the RDMA device --- */

static bool print_guid(FILE *out, __be64 guid_be)
{
	const uint8_t *b = (const uint8_t *)&guid_be;

	return fprintf(out, "%02x%02x:%02x%02x:%02x%02x:%02x%02x\n", b[0], b[1], b[2], b[3], b[4],
		       b[5], b[6], b[7]) > 0;
}

static bool print_node_guid(FILE *out, const struct rn_facts *facts, unsigned index)
{
	(void)index;
	return print_guid(out, facts->attr.node_guid);
}

static bool print_image_guid(FILE *out, const struct rn_facts *facts, unsigned index)
{
	(void)index;
	return print_guid(out, facts->attr.sys_image_guid);
}

static bool print_firmware(FILE *out, const struct rn_facts *facts, unsigned index)
{
	(void)index;
	return fprintf(out, "%.*s\n", (int)sizeof(facts->attr.fw_ver), facts->attr.fw_ver) > 0;
}

static bool print_board(FILE *out, const struct rn_facts *facts, unsigned index)
{
	(void)index;
	return facts->board_id[0] && fprintf(out, "%s\n", facts->board_id) > 0;
}

static bool print_kind(FILE *out, const struct rn_facts *facts, unsigned index)
{
	(void)index;
	return fprintf(out, "MT%u\n", facts->attr.vendor_part_id) > 0;
}

static bool print_hardware(FILE *out, const struct rn_facts *facts, unsigned index)
{
	(void)index;
	return fprintf(out, "%x\n", facts->attr.hw_ver) > 0;
}

static bool print_description(FILE *out, const struct rn_facts *facts, unsigned index)
{
	(void)index;
	return fprintf(out, "%s %s\n", facts->host_name, facts->device) > 0;
}

/* --- its port --- */

static bool print_state(FILE *out, const struct rn_facts *facts, unsigned index)
{
	static const char *const names[] = {"NOP",   "DOWN",   "INIT",
					    "ARMED", "ACTIVE", "ACTIVE_DEFER"};

	(void)index;
	return facts->port.state < sizeof(names) / sizeof(names[0]) &&
	       fprintf(out, "%d: %s\n", (int)facts->port.state, names[facts->port.state]) > 0;
}

static bool print_phys_state(FILE *out, const struct rn_facts *facts, unsigned index)
{
	static const char *const names[] = {"NoStateChange",
					    "Sleep",
					    "Polling",
					    "Disabled",
					    "PortConfigurationTraining",
					    "LinkUp",
					    "LinkErrorRecovery",
					    "Phy Test"};
	const unsigned state = facts->port.phys_state;

	(void)index;
	return state < sizeof(names) / sizeof(names[0]) &&
	       fprintf(out, "%u: %s\n", state, names[state]) > 0;
}

/* IBA 14.2.5.6: what a lane carries, and how many there are. */
static const struct speed {
	uint8_t code;
	unsigned lane_mbps;
	const char *name;
} speeds[] = {
	{1, 2500, " SDR"},   {2, 5000, " DDR"},	  {4, 10000, " QDR"},  {8, 10000, " FDR10"},
	{16, 14000, " FDR"}, {32, 25000, " EDR"}, {64, 50000, " HDR"}, {128, 100000, " NDR"},
};

static unsigned lanes_of(uint8_t width)
{
	return width == 1 ? 1 : width == 2 ? 4 : width == 4 ? 8 : width == 8 ? 12 : 2;
}

static const struct speed *speed_of(const struct rn_facts *facts)
{
	for (size_t i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++)
		if (speeds[i].code == facts->port.active_speed)
			return &speeds[i];
	return NULL;
}

static bool print_rate(FILE *out, const struct rn_facts *facts, unsigned index)
{
	const unsigned lanes = lanes_of(facts->port.active_width);
	const struct speed *speed = speed_of(facts);
	const unsigned mbps = speed ? lanes * speed->lane_mbps : 0;

	(void)index;
	if (!speed)
		return false;
	return fprintf(out, mbps % 1000 ? "%u.%u Gb/sec (%uX%s)\n" : "%u%.0u Gb/sec (%uX%s)\n",
		       mbps / 1000, mbps % 1000 / 100, lanes, speed->name) > 0;
}

static bool print_link_layer(FILE *out, const struct rn_facts *facts, unsigned index)
{
	(void)index;
	return fputs(facts->port.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet\n"
								       : "InfiniBand\n",
		     out) >= 0;
}

static bool print_lid(FILE *out, const struct rn_facts *facts, unsigned index)
{
	(void)index;
	return fprintf(out, "0x%x\n", facts->port.lid) > 0;
}

static bool print_lmc(FILE *out, const struct rn_facts *facts, unsigned index)
{
	(void)index;
	return fprintf(out, "%u\n", facts->port.lmc) > 0;
}

static bool print_sm_lid(FILE *out, const struct rn_facts *facts, unsigned index)
{
	(void)index;
	return fprintf(out, "0x%x\n", facts->port.sm_lid) > 0;
}

static bool print_sm_sl(FILE *out, const struct rn_facts *facts, unsigned index)
{
	(void)index;
	return fprintf(out, "%u\n", facts->port.sm_sl) > 0;
}

static bool print_capabilities(FILE *out, const struct rn_facts *facts, unsigned index)
{
	(void)index;
	return fprintf(out, "0x%08x\n", facts->port.port_cap_flags) > 0;
}

static unsigned count_gids(const struct rn_facts *facts)
{
	return (unsigned)facts->port.gid_tbl_len < RN_FACTS_GIDS ? (unsigned)facts->port.gid_tbl_len
								 : RN_FACTS_GIDS;
}

/* An empty entry reads as zeroes. */
static bool print_gid(FILE *out, const struct rn_facts *facts, unsigned index)
{
	static const union ibv_gid none;
	const uint8_t *raw = facts->has_gid[index] ? facts->gid[index].gid.raw : none.raw;

	for (unsigned i = 0; i < sizeof(none); i += 2)
		fprintf(out, "%s%02x%02x", i ? ":" : "", raw[i], raw[i + 1]);
	return fputc('\n', out) >= 0;
}

static bool print_gid_type(FILE *out, const struct rn_facts *facts, unsigned index)
{
	if (!facts->has_gid[index])
		return false;
	return fputs(facts->gid[index].gid_type == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2\n"
									: "IB/RoCE v1\n",
		     out) >= 0;
}

static bool print_gid_interface(FILE *out, const struct rn_facts *facts, unsigned index)
{
	return facts->has_gid[index] &&
	       fprintf(out, "%s\n", rn_interfaces()[RN_INTERFACE_NIC].name) > 0;
}

static unsigned count_pkeys(const struct rn_facts *facts)
{
	return facts->port.pkey_tbl_len < RN_FACTS_PKEYS ? facts->port.pkey_tbl_len
							 : RN_FACTS_PKEYS;
}

static bool print_pkey(FILE *out, const struct rn_facts *facts, unsigned index)
{
	return fprintf(out, "0x%04x\n", facts->pkey[index]) > 0;
}

/* --- the network interface --- */

static bool print_mac(FILE *out, const uint8_t *mac)
{
	return fprintf(out, "%02x:%02x:%02x:%02x:%02x:%02x\n", mac[0], mac[1], mac[2], mac[3],
		       mac[4], mac[5]) > 0;
}

static bool print_address(FILE *out, const struct rn_facts *facts, unsigned index)
{
	(void)facts;
	(void)index;
	return print_mac(out, rn_interfaces()[RN_INTERFACE_NIC].mac);
}

static bool print_broadcast(FILE *out, const struct rn_facts *facts, unsigned index)
{
	(void)facts;
	(void)index;
	return print_mac(out, rn_interfaces()[RN_INTERFACE_NIC].mac_broadcast);
}

static bool print_mtu(FILE *out, const struct rn_facts *facts, unsigned index)
{
	(void)facts;
	(void)index;
	return fprintf(out, "%u\n", rn_interfaces()[RN_INTERFACE_NIC].mtu_bytes) > 0;
}

static bool print_index(FILE *out, const struct rn_facts *facts, unsigned index)
{
	(void)facts;
	(void)index;
	return fprintf(out, "%u\n", rn_interfaces()[RN_INTERFACE_NIC].index) > 0;
}

static bool print_type(FILE *out, const struct rn_facts *facts, unsigned index)
{
	(void)facts;
	(void)index;
	return fprintf(out, "%u\n", rn_interfaces()[RN_INTERFACE_NIC].type) > 0;
}

static bool print_flags(FILE *out, const struct rn_facts *facts, unsigned index)
{
	(void)facts;
	(void)index;
	/* Running is not among the flags that are stored. */
	return fprintf(out, "0x%x\n",
		       rn_interfaces()[RN_INTERFACE_NIC].flags & ~(unsigned)IFF_RUNNING) > 0;
}

static bool print_speed(FILE *out, const struct rn_facts *facts, unsigned index)
{
	const struct speed *speed = speed_of(facts);

	(void)index;
	return speed &&
	       fprintf(out, "%u\n", lanes_of(facts->port.active_width) * speed->lane_mbps) > 0;
}

#define TEXT(path_, text_)                                                                         \
	{                                                                                          \
		.path = path_, .kind = RN_FILE_TEXT, .text = text_                                 \
	}
#define PRINT(path_, print_)                                                                       \
	{                                                                                          \
		.path = path_, .kind = RN_FILE_TEXT, .print = print_                               \
	}
#define EACH(path_, count_, print_)                                                                \
	{                                                                                          \
		.path = path_, .kind = RN_FILE_TEXT, .print = print_, .count = count_              \
	}
#define LINK(path_, text_)                                                                         \
	{                                                                                          \
		.path = path_, .kind = RN_FILE_LINK, .text = text_                                 \
	}
#define FOLDER(path_)                                                                              \
	{                                                                                          \
		.path = path_, .kind = RN_FILE_FOLDER                                              \
	}

const struct rn_file rn_files_table[] = {
	PRINT("/proc/sys/kernel/hostname", print_host_name),
	LINK("/sys/class/net/lo", "/sys/devices/virtual/net/lo"),
	FOLDER("/sys/class/infiniband"),
	FOLDER("/sys/class/infiniband_verbs"),
	FOLDER("/dev/infiniband"),

	LINK("/sys/bus/pci/devices/" SLOT, "../../../devices/pci1000:00/" SLOT),
	PRINT(PCI "/vendor", print_pci_vendor),
	PRINT(PCI "/device", print_pci_device),
	PRINT(PCI "/subsystem_vendor", print_pci_vendor),
	PRINT(PCI "/subsystem_device", print_pci_device),
	PRINT(PCI "/revision", print_pci_revision),
	PRINT(PCI "/local_cpulist", print_processors),
	TEXT(PCI "/class", "0x020000\n"),
	TEXT(PCI "/numa_node", "-1\n"),
	TEXT(PCI "/uevent", "DRIVER=rnicsim\nPCI_CLASS=20000\nPCI_SLOT_NAME=" SLOT "\n"),

	LINK("/sys/class/infiniband/@", "../../devices/pci1000:00/" SLOT "/infiniband/@"),
	LINK(IB "/device", "../../../" SLOT),
	LINK(IB "/subsystem", "../../../../../class/infiniband"),
	TEXT(IB "/node_type", "1: CA\n"),
	PRINT(IB "/node_guid", print_node_guid),
	PRINT(IB "/sys_image_guid", print_image_guid),
	PRINT(IB "/node_desc", print_description),
	PRINT(IB "/fw_ver", print_firmware),
	PRINT(IB "/board_id", print_board),
	PRINT(IB "/hca_type", print_kind),
	PRINT(IB "/hw_rev", print_hardware),
	TEXT(IB "/uevent", "NAME=@\n"),
	PRINT(PORT "/state", print_state),
	PRINT(PORT "/phys_state", print_phys_state),
	PRINT(PORT "/rate", print_rate),
	PRINT(PORT "/link_layer", print_link_layer),
	PRINT(PORT "/lid", print_lid),
	PRINT(PORT "/lid_mask_count", print_lmc),
	PRINT(PORT "/sm_lid", print_sm_lid),
	PRINT(PORT "/sm_sl", print_sm_sl),
	PRINT(PORT "/cap_mask", print_capabilities),
	EACH(PORT "/gids/#", count_gids, print_gid),
	EACH(PORT "/gid_attrs/types/#", count_gids, print_gid_type),
	EACH(PORT "/gid_attrs/ndevs/#", count_gids, print_gid_interface),
	EACH(PORT "/pkeys/#", count_pkeys, print_pkey),

	TEXT("/sys/class/infiniband_verbs/abi_version", UVERBS_ABI),
	LINK("/sys/class/infiniband_verbs/%",
	     "../../devices/pci1000:00/" SLOT "/infiniband_verbs/%"),
	LINK(UVERBS "/device", "../../../" SLOT),
	LINK(UVERBS "/subsystem", "../../../../../class/infiniband_verbs"),
	TEXT(UVERBS "/ibdev", "@\n"),
	TEXT(UVERBS "/abi_version", DEVICE_ABI),
	TEXT(UVERBS "/dev", "231:192\n"),
	TEXT(UVERBS "/uevent", "MAJOR=231\nMINOR=192\nDEVNAME=infiniband/%\nDEVMODE=0666\n"),
	{.path = "/dev/infiniband/%",
	 .kind = RN_FILE_DEVICE,
	 .major = UVERBS_MAJOR,
	 .minor = UVERBS_MINOR},

	LINK("/sys/class/net/$", "../../devices/pci1000:00/" SLOT "/net/$"),
	LINK(NET "/device", "../../../" SLOT),
	LINK(NET "/subsystem", "../../../../../class/net"),
	PRINT(NET "/address", print_address),
	PRINT(NET "/broadcast", print_broadcast),
	PRINT(NET "/mtu", print_mtu),
	PRINT(NET "/ifindex", print_index),
	PRINT(NET "/iflink", print_index),
	PRINT(NET "/type", print_type),
	PRINT(NET "/flags", print_flags),
	PRINT(NET "/speed", print_speed),
	TEXT(NET "/addr_len", "6\n"),
	TEXT(NET "/carrier", "1\n"),
	TEXT(NET "/operstate", "up\n"),
	TEXT(NET "/duplex", "full\n"),
	TEXT(NET "/dev_id", "0x0\n"),
	TEXT(NET "/dev_port", "0\n"),
	TEXT(NET "/tx_queue_len", "1000\n"),
	TEXT(NET "/uevent", "INTERFACE=$\nIFINDEX=2\n"),
};

const unsigned rn_files_rows = sizeof(rn_files_table) / sizeof(rn_files_table[0]);
