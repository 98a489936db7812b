#!/usr/bin/env bash
# Does everything on a lent machine within 20 minutes, and leaves one folder of results.
#
#   utils/on_device.sh wheels [OPTION...]         # where there is a network: builds and downloads wheels into ./wheels
#   utils/on_device.sh DEVICE [BACKEND] [FOLDER]  # on the machine: cuda, mps, gpu or cpu; torch by default; results-DEVICE
#
# The library of the backend is that of the machine's Python (PYTHON, by default python3). Without a folder ./wheels the
# packages come from the index. The options are those of `pip download` for a machine that is not like this one, such as
# --platform manylinux_2_28_x86_64 --python-version 3.12. QUICK=1 checks a few ops only, to try the script itself.
# Each step has a time limit, and all of them together 20 minutes; its output is FOLDER/STEP.txt, its exit status a line of
# FOLDER/status.txt. The exit status is 1 if a step failed, and 130 after Ctrl-C, which keeps what is in the folder.
set -u
SECONDS=0
cd "$(dirname "$0")/.." || exit 2
PYTHON=${PYTHON:-python3}

if [ "${1:-}" = wheels ]; then
    shift
    mkdir -p wheels
    "$PYTHON" -m pip wheel --quiet --no-deps --wheel-dir wheels . ./emberlint || exit 1
    exec "$PYTHON" -m pip download --quiet --dest wheels --only-binary :all: --constraint constraints.txt "$@" \
        click numpy platformdirs ml_dtypes rich hypothesis scipy
fi
[ $# -ge 1 ] || { sed -n '2,13p' "$0"; exit 2; }
DEVICE=$1 BACKEND=${2:-torch}
FOLDER=${3:-results-$DEVICE}
[ -z "$(ls -A "$FOLDER" 2> /dev/null)" ] || { echo "$FOLDER is not empty: name another folder, or remove it" >&2; exit 2; }
mkdir -p "$FOLDER"
FOLDER=$(cd "$FOLDER" && pwd)
: > "$FOLDER/status.txt"
OPS='*' ROUNDS=5 MODELS=''
[ -z "${QUICK:-}" ] || OPS='*mul*' ROUNDS=1 MODELS=mlp

# step NAME SECONDS COMMAND...: runs a command, and notes its exit status and how long it took.
step() {
    local name=$1 limit=$2 began=$SECONDS status
    shift 2
    [ "$limit" -lt $((1200 - began)) ] || limit=$((1200 - began))
    "$ENV/bin/python" -c 'import subprocess, sys
try:
    sys.exit(subprocess.run(sys.argv[2:], timeout=float(sys.argv[1])).returncode)
except subprocess.TimeoutExpired:
    sys.exit(124)' "$limit" "$@" > "$FOLDER/$name.txt" 2>&1
    status=$?
    echo "$name: exit status $status, $((SECONDS - began)) s" | tee -a "$FOLDER/status.txt"
}

ENV=$(mktemp -d)/env
trap 'rm -rf "$(dirname "$ENV")"' EXIT
"$PYTHON" -m venv --system-site-packages "$ENV" || exit 2
# A Python that is itself one of an environment would hide the packages of that environment.
"$PYTHON" -c 'import site; print("\n".join(site.getsitepackages()))' > "$("$ENV/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/machine.pth"
source=(--no-index --find-links wheels)
[ -d wheels ] || { source=(); step build 180 "$PYTHON" -m pip wheel --quiet --no-deps --wheel-dir "$ENV/wheels" .; }
PIP=("$ENV/bin/python" -m pip install --quiet ${source[@]+"${source[@]}"} --find-links "$ENV/wheels")
step install 120 "${PIP[@]}" --no-deps --force-reinstall emberharmony
step install-checks 300 "${PIP[@]}" "emberharmony[conformance]"
RUN="$ENV/bin/emberharmony"
cd "$FOLDER" || exit 2  # so that the installed package is imported, and not the checkout
REPO=$OLDPWD
step doctor 120 "$RUN" doctor --backend "$BACKEND" --device "$DEVICE" --report "doctor-$DEVICE.json"
for precision in float32 tf32; do
    step "conformance-$precision" 420 "$RUN" conformance --quick --backend "$BACKEND" --op "$OPS" --device "$DEVICE" \
        --precision "$precision" --report "conformance-$DEVICE-$precision.json"
done
export EMBERHARMONY_DEVICE=$DEVICE
case $BACKEND in
    numpy | torch | mlx)  # the benchmark has native models for these only
        step models 300 "$ENV/bin/python" "$REPO/benchmarks/models.py" "$MODELS" --backend "$BACKEND" --rounds "$ROUNDS" \
            --json models.json ;;
esac
cat > two.py <<'PROGRAM'
from emberharmony import ops

D = ops.distributed
world = D.init()
x = ops.full((1024, 1024), float(world.rank + 1))
total = D.all_sum({"x": x})["x"]
assert float(ops.to_numpy(total)[0, 0]) == 3.0, total
assert ops.get_device(total) == ops.get_default_device()
print(f"rank {world.rank} of {world.size} on {ops.get_device(total)}: 1 + 2 = {float(ops.to_numpy(total)[0, 0]):g}")
PROGRAM
step distributed 60 "$RUN" launch -n 2 --backend "$BACKEND" two.py
unset EMBERHARMONY_DEVICE
step distributed-speed 60 "$ENV/bin/python" "$REPO/benchmarks/distributed.py" --ranks 2 --rounds 5 --json distributed.json

# 2 is the exit status of a device that lacks the precision, which is no failure of the machine.
! grep -v -e 'exit status 0,' -e '^conformance-tf32: exit status 2,' status.txt
