//! System calls that rustix does not wrap: the only module with `unsafe`.
//!
//! Each function is a safe wrapper of one call; its `SAFETY` comment says why the call can only
//! access memory that it was given.
#![allow(unsafe_code)] // see above

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Turns on timestamps of when the kernel received a socket's data (`SO_TIMESTAMPNS`, socket(7)).
///
/// # Errors
/// The socket does not have this option.
pub fn stamp_received(socket: impl AsFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: `on` outlives the call, which reads the four bytes that it names.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPNS,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Room for one control message with a `struct timespec`, aligned as the kernel writes it.
#[repr(C, align(8))]
struct Control([u8; 64]);

/// Reads like `recv(2)`, and returns when the kernel received the last byte, in nanoseconds of `CLOCK_REALTIME`, if it
/// reports that. `wait`: whether to wait for data until the socket's time limit.
///
/// # Errors
/// Those of `recvmsg(2)`; `WouldBlock` if there is nothing to read.
pub fn receive_stamped(
    socket: impl AsFd,
    into: &mut [u8],
    wait: bool,
) -> io::Result<(usize, Option<u64>)> {
    let flags = if wait { 0 } else { libc::MSG_DONTWAIT };
    let mut control = Control([0; 64]);
    let mut part = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    // SAFETY: all-zero is a valid `msghdr`: null pointers with lengths of zero.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control.0).cast();
    #[allow(clippy::useless_conversion)] // socklen_t with musl, size_t with glibc
    {
        message.msg_controllen = control.0.len().try_into().unwrap_or(0);
    }
    // SAFETY: the header points to `part`, `into` and `control`, which outlive the call and have
    // the lengths that it says.
    let count = unsafe { libc::recvmsg(socket.as_fd().as_raw_fd(), &raw mut message, flags) };
    if count < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel filled `control` and set its length; the macros stay within it.
    let received = unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (!header.is_null()
            && (*header).cmsg_level == libc::SOL_SOCKET
            && (*header).cmsg_type == libc::SCM_TIMESTAMPNS)
            .then(|| libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned())
    };
    let received = received.map(|time| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64);
    Ok((count as usize, received))
}

/// The kernel's counts for a thread (`getrusage(2)`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
    pub minor_faults: u64,
    pub major_faults: u64,
}

#[must_use]
pub fn counts_of_this_thread() -> Counts {
    // SAFETY: all-zero is a valid `rusage`, which is plain numbers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` outlives the call, which writes only to it.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    Counts {
        voluntary_switches: usage.ru_nvcsw as u64,
        involuntary_switches: usage.ru_nivcsw as u64,
        minor_faults: usage.ru_minflt as u64,
        major_faults: usage.ru_majflt as u64,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::clock;

    #[test]
    fn bytes_over_tcp_come_with_the_time_of_their_arrival() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut sender = TcpStream::connect(listener.local_addr().expect("address")).expect("up");
        let socket = listener.accept().expect("accepted").0;
        stamp_received(&socket).expect("TCP has it");
        // The kernel begins to stamp packets some time after the option is set.
        let deadline = Instant::now() + Duration::from_secs(5);
        loop {
            let before = clock::realtime_ns();
            sender.write_all(b"hello").expect("sent");
            std::thread::sleep(Duration::from_millis(20));
            let after = clock::realtime_ns();
            let mut buffer = [0; 16];
            let (count, at_ns) = receive_stamped(&socket, &mut buffer, false).expect("there");
            assert_eq!(&buffer[..count], b"hello");
            if let Some(at_ns) = at_ns {
                assert!(before <= at_ns && at_ns + 10_000_000 < after, "{before} {at_ns} {after}");
                break;
            }
            assert!(Instant::now() < deadline, "never stamped");
        }
    }

    #[test]
    fn an_empty_socket_would_block() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let _sender = TcpStream::connect(listener.local_addr().expect("address")).expect("up");
        let socket = listener.accept().expect("accepted").0;
        let error = receive_stamped(&socket, &mut [0; 16], false).expect_err("nothing there");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }
}
