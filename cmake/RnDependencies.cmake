# Everything comes from Debian packages (tools/setup installs them) and is found through pkg-config.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(SYSTEMC REQUIRED IMPORTED_TARGET systemc)
pkg_check_modules(FYAML REQUIRED IMPORTED_TARGET libfyaml)
pkg_check_modules(ISAL REQUIRED IMPORTED_TARGET libisal)
pkg_check_modules(PCAP REQUIRED IMPORTED_TARGET libpcap)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(CHECK REQUIRED IMPORTED_TARGET check)
# It has no pkg-config file.
find_path(RN_ZYDIS_INCLUDE Zydis/Zydis.h REQUIRED)
find_library(RN_ZYDIS_LIBRARY Zydis REQUIRED)
add_library(rn_zydis INTERFACE)
target_include_directories(rn_zydis SYSTEM INTERFACE "${RN_ZYDIS_INCLUDE}")
target_link_libraries(rn_zydis INTERFACE "${RN_ZYDIS_LIBRARY}")

# Debian's own Python: scapy and pyverbs are Debian packages, which another python3 in PATH does not see.
find_program(RN_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH REQUIRED)
