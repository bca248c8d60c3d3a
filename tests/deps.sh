#!/usr/bin/env bash
# Installs what `make` lacks, and nothing that is there: `tests/deps.sh build` for what the build
# needs, `tests/deps.sh test` for what the tests need beyond it. Quiet and quick when all is there.
set -euo pipefail

packages=()

# need COMMAND PACKAGE: the package is wanted where the command is missing.
need() {
    command -v "$1" >/dev/null || packages+=("$2")
}

needs_of_build() {
    if ! command -v cargo >/dev/null; then
        echo "cargo is missing: install a Rust toolchain first, see https://rustup.rs" >&2
        exit 1
    fi
    need cc build-essential
}

needs_of_test() {
    needs_of_build
    need git git
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
