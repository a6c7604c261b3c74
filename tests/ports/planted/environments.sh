#!/bin/sh
# Makes interpreters with the packages of the pairs: sh tests/ports/planted/environments.sh FOLDER
# Each sees the packages of steelyard's managed environment of its framework, which must be there, and some of its own.
set -eu
mkdir -p "$1"
folder=$(cd "$1" && pwd)
managed=${STEELYARD_CACHE:-$HOME/.cache/steelyard}/environments
hub="tokenizers==0.22.1 huggingface-hub<1 hf-xet safetensors regex requests tqdm packaging idna certifi charset-normalizer urllib3 pyyaml filelock fsspec"

make() { # name, framework, packages
    name=$1 framework=$2
    shift 2
    base=$(ls -d "$managed/$framework"-*-cpu-* | tail -n 1)
    uv venv --quiet --python "$(readlink -f "$base/bin/python")" "$folder/$name"
    "$folder/$name/bin/python" - "$base" <<'PYTHON'
import glob, sys, sysconfig
from pathlib import Path
Path(sysconfig.get_paths()["purelib"], "managed.pth").write_text(glob.glob(f"{sys.argv[1]}/lib/python3*/site-packages")[0])
PYTHON
    [ $# -eq 0 ] || uv pip install --quiet --python "$folder/$name/bin/python" --no-deps "$@"
}

make pytorch pytorch
make transformers pytorch transformers==4.57.6 $hub
make torchvision pytorch torchvision==0.28.0 pillow
make jax jax transformers==4.57.6 $hub
make tensorflow tensorflow
