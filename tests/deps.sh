#!/usr/bin/env bash
# Installs what `make` lacks, and nothing that is there: `tests/deps.sh build` for what the build
# needs, `tests/deps.sh test` for what the tests need beyond it. Quiet and quick when all is there.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=()

# need COMMAND PACKAGE: the package is wanted where the command is missing.
need() {
    command -v "$1" >/dev/null || packages+=("$2")
}

# The C library of clang; libclang-cpp, which other packages bring along, is not it.
has_libclang() {
    compgen -G '/usr/lib/llvm-*/lib/libclang.so*' >/dev/null ||
        compgen -G '/usr/lib/llvm-*/lib/libclang-[0-9]*.so*' >/dev/null
}

needs_of_build() {
    if ! command -v cargo >/dev/null; then
        echo "cargo is missing: install a Rust toolchain first, see https://rustup.rs" >&2
        exit 1
    fi
    need cc build-essential
    need c++ g++
    # HiGHS, the solver of integer programmes, is C++, and its bindings are made by libclang.
    need cmake cmake
    has_libclang || packages+=(libclang-dev)
}

needs_of_test() {
    needs_of_build
    need git git
    need python3 python3
    # Debian's python3 comes without what makes virtual environments.
    python3 -c 'import ensurepip, venv' 2>/dev/null || packages+=(python3-venv)
}

# Python tools go into .venv, which is left alone while it is made from the same list.
install_python_tools() {
    local list=tests/contract/requirements.txt
    cmp -s "$list" .venv/requirements.txt && return 0
    echo "installing schemathesis into .venv" >&2
    rm -rf .venv
    python3 -m venv .venv
    .venv/bin/pip install --quiet --disable-pip-version-check -r "$list"
    cp "$list" .venv/requirements.txt
}

# A Go of the language level that the client's go.mod asks for, or newer, and a toolchain in .venv
# where there is none: distributions are years behind.
install_go() {
    local list=tests/go/requirements.txt
    tests/go/run --find >/dev/null 2>&1 && return 0
    echo "installing Go into .venv" >&2
    .venv/bin/pip install --quiet --disable-pip-version-check -r "$list"
}

install() {
    [ ${#packages[@]} -gt 0 ] || return 0
    echo "installing ${packages[*]}" >&2
    if ! command -v apt-get >/dev/null; then
        echo "no apt-get here: install ${packages[*]} by hand and try again" >&2
        exit 1
    fi
    local as_root=()
    [ "$(id -u)" -eq 0 ] || as_root=(sudo)
    "${as_root[@]}" apt-get update -qq
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -qq -y --no-install-recommends "${packages[@]}" >/dev/null
}

case "${1:-}" in
build) needs_of_build ;;
test) needs_of_test ;;
*)
    echo "usage: $0 build|test" >&2
    exit 2
    ;;
esac
install
if [ "$1" = test ]; then
    install_python_tools
    install_go
fi
