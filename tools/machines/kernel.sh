#!/bin/sh
# Build a user-mode Linux from Debian's kernel source: kernel.sh DIR [SUITE (testing)]. The result is DIR/linux.
# Its source comes from SUITE, whatever this machine's own: user-mode Linux has several CPUs from 6.19 on.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
suite=${2:-testing}
"$here/../../scripts/apt_install.sh" "to build a kernel" gcc:gcc make:make flex:flex bison:bison bc:bc xz:xz-utils libelf-dev
mkdir -p "$1"
cd "$1"

mkdir -p apt/lists/partial apt/cache
# shellcheck disable=SC2016  # apt fills it in
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Origin: Debian' | grep -v security | head -n 1)
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >apt/sources.list
apt() {
    command "$@" -o Dir::Etc::sourcelist="$PWD/apt/sources.list" -o Dir::Etc::sourceparts=- \
        -o Dir::State::lists="$PWD/apt/lists" -o Dir::Cache="$PWD/apt/cache" -o APT::Sandbox::User=root
}
if ! ls linux-source-*.deb >/dev/null 2>&1; then
    apt apt-get -qq update
    package=$(apt apt-cache depends linux-source | awk '/Depends:/ { print $2; exit }')
    apt apt-get -qq download "$package"
fi
if [ ! -d src ]; then
    dpkg-deb -x linux-source-*.deb deb
    mkdir src.part
    # Drivers of hardware are most of the source, and a user-mode kernel has none.
    tar -C src.part --strip-components=1 -xf deb/usr/src/linux-source-*.tar.xz --exclude='*/drivers/gpu/*.[ch]' \
        --exclude='*/sound/*.[ch]' --exclude='*/drivers/net/ethernet/*.[ch]' --exclude='*/drivers/net/wireless/*.[ch]'
    mv src.part src
    rm -r deb
fi
cd src
make -s ARCH=um x86_64_defconfig
scripts/kconfig/merge_config.sh -m .config "$here/kernel.config" >../merge.log
make -s ARCH=um olddefconfig
# A user-mode kernel's vDSO lacks functions that rustix looks for, and tare-probe then ends: announce none.
sed -i -e 's|um_vdso_addr = task_size - PAGE_SIZE;|um_vdso_addr = 0;|' \
    -e 's|^\tif (mmap_write_lock_killable(mm))$|\tif (!um_vdso_addr)\n\t\treturn 0;\n&|' arch/x86/um/vdso/vma.c
make -s ARCH=um -j"$(nproc)" linux
strip -o ../linux.part linux
mv ../linux.part ../linux
