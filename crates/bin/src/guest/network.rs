//! Address, mask and default route of the network card, by netdevice(7), as there is no `ip` here.
#![allow(unsafe_code)] // ioctl(2), which rustix does not wrap for interfaces

use std::io;
use std::net::Ipv4Addr;

use serde_json::Value;

use crate::Failure;

const CARD: &str = "eth0";

/// Sets up loopback and the card as `{"address": "10.0.2.15", "prefix": 24, "gateway": "10.0.2.2"}` says.
///
/// # Errors
/// A card is missing, or the kernel refuses a setting.
pub(crate) fn set_up(spec: &Value) -> Result<(), Failure> {
    let socket = Socket::new()?;
    socket.up("lo")?;
    let address: Ipv4Addr = spec["address"].as_str().ok_or("no address")?.parse()?;
    let gateway: Ipv4Addr = spec["gateway"].as_str().ok_or("no gateway")?.parse()?;
    let prefix =
        spec["prefix"].as_u64().filter(|bits| (1..=32).contains(bits)).ok_or("no prefix")?;
    let mask = Ipv4Addr::from(u32::MAX << (32 - prefix));
    socket.set(CARD, libc::SIOCSIFADDR, address).map_err(|error| format!("{CARD}: {error}"))?;
    socket.set(CARD, libc::SIOCSIFNETMASK, mask)?;
    socket.up(CARD)?;
    socket.default_route(gateway)?;
    Ok(())
}

struct Socket(libc::c_int);

impl Socket {
    fn new() -> io::Result<Self> {
        // SAFETY: no memory is passed; the descriptor is owned by `Self`.
        let descriptor =
            unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
        if descriptor < 0 { Err(io::Error::last_os_error()) } else { Ok(Self(descriptor)) }
    }

    fn set(&self, card: &str, request: libc::c_ulong, address: Ipv4Addr) -> io::Result<()> {
        let mut asked = named(card);
        asked.ifr_ifru.ifru_addr = to_sockaddr(address);
        self.ask(request, &raw const asked)
    }

    fn up(&self, card: &str) -> io::Result<()> {
        let mut asked = named(card);
        asked.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        self.ask(libc::SIOCSIFFLAGS, &raw const asked)
    }

    fn default_route(&self, gateway: Ipv4Addr) -> io::Result<()> {
        // SAFETY: all bytes zero are a valid value of this C structure.
        let mut route: libc::rtentry = unsafe { std::mem::zeroed() };
        route.rt_dst = to_sockaddr(Ipv4Addr::UNSPECIFIED);
        route.rt_genmask = to_sockaddr(Ipv4Addr::UNSPECIFIED);
        route.rt_gateway = to_sockaddr(gateway);
        route.rt_flags = libc::RTF_UP | libc::RTF_GATEWAY;
        self.ask(libc::SIOCADDRT, &raw const route)
    }

    fn ask<T>(&self, request: libc::c_ulong, structure: *const T) -> io::Result<()> {
        // SAFETY: each caller passes the structure that netdevice(7) or route(8) names for its request, and it
        // outlives the call.
        let result = unsafe { libc::ioctl(self.0, request as _, structure) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours, and closed once.
        unsafe { libc::close(self.0) };
    }
}

fn named(card: &str) -> libc::ifreq {
    // SAFETY: all bytes zero are a valid value of this C structure.
    let mut asked: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in asked.ifr_name.iter_mut().zip(card.bytes()) {
        *place = byte as libc::c_char;
    }
    asked
}

fn to_sockaddr(address: Ipv4Addr) -> libc::sockaddr {
    // SAFETY: all bytes zero are a valid value; a sockaddr_in is as long as a sockaddr (ip(7)).
    let mut sockaddr: libc::sockaddr = unsafe { std::mem::zeroed() };
    sockaddr.sa_family = libc::AF_INET as libc::sa_family_t;
    for (place, byte) in sockaddr.sa_data[2..6].iter_mut().zip(address.octets()) {
        *place = byte as libc::c_char;
    }
    sockaddr
}
