# Sourced by tools/check and tools/demo: steps whose output is shown only when they fail.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# step TITLE COMMAND...: runs COMMAND in the source tree; its log is shown when it fails.
step() {
	local title=$1 log start=$SECONDS
	shift
	log=$(mktemp "${TMPDIR:-/tmp}/rnicsim-step.XXXXXX")
	printf '%s ... ' "$title"
	if (cd "$root" && "$@") </dev/null >"$log" 2>&1; then
		printf 'done (%d s)\n' $((SECONDS - start))
		rm -f "$log"
		return 0
	fi
	printf 'FAILED\n'
	tail -n 100 "$log" >&2
	printf '%s: failed: %s\n  whole log: %s\n' "$title" "$*" "$log" >&2
	return 1
}

# build PRESET [TARGET...]: configures and builds, all targets if none is named.
build() {
	local preset=$1 target=()
	shift
	[ $# -gt 0 ] && target=(--target "$@")
	mkdir -p "$root/build/$preset" 2>/dev/null
	if [ ! -w "$root/build/$preset" ]; then
		echo "$root/build/$preset belongs to another user; remove it, or run as that user" >&2
		return 1
	fi
	step "configure ($preset)" cmake --preset "$preset" &&
		step "build ($preset)" cmake --build --preset "$preset" "${target[@]}"
}
