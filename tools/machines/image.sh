#!/bin/sh
# Build the disk of a Debian machine with systemd, Docker, Podman and containerd: image.sh DIR SUITE (needs root).
# DIR gets disk.img and key, by which ssh logs in as root, as `docker` (of that group) and as `plain` (rootless Podman).
set -eu
dir=$1 suite=$2
"$(dirname "$0")/../../scripts/apt_install.sh" "to build test machines" mmdebstrap:mmdebstrap mke2fs:e2fsprogs ssh-keygen:openssh-client
mkdir -p "$dir"
cd "$dir"
[ -e key ] || ssh-keygen -q -t ed25519 -N '' -f key

base=passwd,systemd,systemd-sysv,systemd-resolved,udev,dbus,dbus-user-session,libpam-systemd,openssh-server,sudo,procps,iproute2,ca-certificates
engines=docker.io,containerd,runc,crun,podman,passt,slirp4netns,uidmap,fuse-overlayfs,netavark,aardvark-dns,catatonit
networks=containernetworking-plugins,iptables,nftables
tried=python3,python3-venv,mmdebstrap,debian-archive-keyring,sysstat,apparmor,e2fsprogs
case $suite in
    bookworm) ;;  # its docker.io holds the client
    *) engines=$engines,docker-cli ;;
esac

cat >customize.part <<'HOOK'
set -eu
root=$1
echo guest >"$root/etc/hostname"
echo "127.0.0.1 localhost guest" >"$root/etc/hosts"
# This machine's own certificates and pip settings, so that packages come as they do here.
mkdir -p "$root/usr/local/share/ca-certificates"
cp /usr/local/share/ca-certificates/*.crt "$root/usr/local/share/ca-certificates/" 2>/dev/null || true
chroot "$root" update-ca-certificates >/dev/null 2>&1
printf '[Match]\nName=vec*\n[Network]\nAddress=10.0.2.15/24\nGateway=10.0.2.2\nDNS=10.0.2.3\n' >"$root/etc/systemd/network/10-vec.network"
ln -sf /run/systemd/resolve/resolv.conf "$root/etc/resolv.conf"
chroot "$root" systemctl enable systemd-networkd ssh podman.socket >/dev/null 2>&1
mkdir -p "$root/var/lib/systemd/linger"
for user in docker plain; do
    [ "$user" = plain ] && chroot "$root" useradd -m -s /bin/bash plain || chroot "$root" useradd -m -s /bin/bash -g docker docker
    touch "$root/var/lib/systemd/linger/$user"
done
for home in root home/docker home/plain; do
    install -D -m 0600 key.pub "$root/$home/.ssh/authorized_keys"
    chmod 700 "$root/$home/.ssh"
    [ "$home" = root ] || chroot "$root" chown -R "${home#home/}" "/$home/.ssh"
done
echo 'LABEL=guest / ext4 defaults,noatime 0 1' >"$root/etc/fstab"
for unit in apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer fstrim.timer systemd-networkd-wait-online.service; do
    ln -sf /dev/null "$root/etc/systemd/system/$unit"
done
HOOK
mmdebstrap --quiet --variant=apt --mode=root --aptopt='APT::Install-Recommends "false"' --aptopt='Acquire::Check-Valid-Until "false"' \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --include="$base,$engines,$networks,$tried" --customize-hook="sh $PWD/customize.part \"\$1\"" "$suite" root.tar
rm customize.part
mkdir root
tar -C root --numeric-owner -xf root.tar
rm -f disk.part
truncate -s 24G disk.part
mke2fs -q -F -t ext4 -L guest -O ^has_journal -d root disk.part
rm -rf --one-file-system root root.tar
mv disk.part disk.img
