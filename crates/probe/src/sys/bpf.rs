//! `bpf(2)` calls for a counting program, and a view of its counters.

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

const BPF_MAP_CREATE: libc::c_long = 0;
const BPF_MAP_UPDATE_ELEM: libc::c_long = 2;
const BPF_MAP_DELETE_ELEM: libc::c_long = 3;
const BPF_PROG_LOAD: libc::c_long = 5;
const BPF_RAW_TRACEPOINT_OPEN: libc::c_long = 17;

pub const MAP_HASH: u32 = 1;
pub const MAP_ARRAY: u32 = 2;
/// Forgets the entry that was used least lately where it is full.
pub const MAP_LRU_HASH: u32 = 9;
/// The map's values can be mapped into this process.
pub const MAP_MMAPABLE: u32 = 1 << 10;

const PROG_TYPE_TRACING: u32 = 26;
const ATTACH_TRACE_RAW_TP: u32 = 23;

#[repr(C)]
#[derive(Default)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
}

#[repr(C)]
#[derive(Default)]
struct MapElement {
    map_fd: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
#[derive(Default)]
struct ProgramLoad {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
    prog_name: [u8; 16],
    prog_ifindex: u32,
    expected_attach_type: u32,
    prog_btf_fd: u32,
    func_info_rec_size: u32,
    func_info: u64,
    func_info_cnt: u32,
    line_info_rec_size: u32,
    line_info: u64,
    line_info_cnt: u32,
    attach_btf_id: u32,
    attach_prog_fd: u32,
}

#[repr(C)]
#[derive(Default)]
struct RawTracepoint {
    name: u64,
    prog_fd: u32,
    padding: u32,
}

/// Calls `bpf(2)` with one of the structs above.
fn call<T>(command: libc::c_long, attributes: &mut T) -> io::Result<i32> {
    // SAFETY: `attributes` is one of the `repr(C)` structs above, a prefix of the kernel's union, and
    // outlives the call; pointers inside it come from slices that the callers hold until it returns.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), size_of::<T>())
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}

fn owned(descriptor: i32) -> OwnedFd {
    // SAFETY: the kernel has just returned this descriptor (close-on-exec) and nobody else has it.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

/// A type without padding or pointers, of which each byte may be read.
pub trait Plain: Copy {}
impl Plain for u32 {}
impl Plain for u64 {}
impl<T: Plain, const N: usize> Plain for [T; N] {}

/// A map of the kernel, which copies exactly the lengths of `K` and `V`.
#[derive(Debug)]
pub struct Map<K, V> {
    descriptor: OwnedFd,
    of: PhantomData<(K, V)>,
}

impl<K: Plain, V: Plain> Map<K, V> {
    /// # Errors
    /// Without `CAP_BPF`, or where the kernel does not know this kind of map.
    pub fn create(map_type: u32, max_entries: u32, map_flags: u32) -> io::Result<Self> {
        let (key_size, value_size) = (size_of::<K>() as u32, size_of::<V>() as u32);
        let mut attributes = MapCreate { map_type, key_size, value_size, max_entries, map_flags };
        let descriptor = call(BPF_MAP_CREATE, &mut attributes).map(owned)?;
        Ok(Self { descriptor, of: PhantomData })
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    /// The map is full.
    pub fn update(&self, key: &K, value: &V) -> io::Result<()> {
        let mut attributes = MapElement {
            map_fd: self.descriptor.as_raw_fd() as u32,
            key: std::ptr::from_ref(key) as u64,
            value: std::ptr::from_ref(value) as u64,
            ..MapElement::default()
        };
        call(BPF_MAP_UPDATE_ELEM, &mut attributes).map(|_| ())
    }

    /// # Errors
    /// There is no such key.
    pub fn delete(&self, key: &K) -> io::Result<()> {
        let mut attributes = MapElement {
            map_fd: self.descriptor.as_raw_fd() as u32,
            key: std::ptr::from_ref(key) as u64,
            ..MapElement::default()
        };
        call(BPF_MAP_DELETE_ELEM, &mut attributes).map(|_| ())
    }
}

impl<K, V> AsRawFd for Map<K, V> {
    fn as_raw_fd(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }
}

/// Loads a tracing program for the raw tracepoint whose BTF type is given.
///
/// # Errors
/// The kernel's error, with the verifier's message.
pub fn load_tracing(instructions: &[u64], attach_btf_id: u32) -> io::Result<OwnedFd> {
    // The kernel shows its structs to GPL-compatible programs only; see docs/decisions on the probe.
    let license = c"Dual MIT/GPL";
    let mut attributes = ProgramLoad {
        prog_type: PROG_TYPE_TRACING,
        insn_cnt: instructions.len() as u32,
        insns: instructions.as_ptr() as u64,
        license: license.as_ptr() as u64,
        prog_name: *b"tare_block\0\0\0\0\0\0",
        expected_attach_type: ATTACH_TRACE_RAW_TP,
        attach_btf_id,
        ..ProgramLoad::default()
    };
    let refused = match call(BPF_PROG_LOAD, &mut attributes) {
        Ok(program) => return Ok(owned(program)),
        Err(refused) => refused,
    };
    let mut log = vec![0_u8; 1 << 16];
    attributes.log_level = 1;
    attributes.log_size = log.len() as u32;
    attributes.log_buf = log.as_mut_ptr() as u64;
    // Loaded again only for the verifier's message; the error is already known.
    let _ = call(BPF_PROG_LOAD, &mut attributes).map(owned);
    let said = log.split(|byte| *byte == 0).next().unwrap_or_default();
    let last = String::from_utf8_lossy(said);
    let last = last.lines().rev().take(4).collect::<Vec<_>>().join(" < ");
    Err(io::Error::new(refused.kind(), format!("{refused} {last}").trim_end().to_owned()))
}

/// Attaches a loaded program; closing the result detaches it.
///
/// # Errors
/// The kernel does not allow it.
pub fn attach_tracing(program: &OwnedFd) -> io::Result<OwnedFd> {
    let mut attributes =
        RawTracepoint { prog_fd: program.as_raw_fd() as u32, ..RawTracepoint::default() };
    call(BPF_RAW_TRACEPOINT_OPEN, &mut attributes).map(owned)
}

/// Counters of an array map, read without a system call.
#[derive(Debug)]
pub struct CounterView {
    start: NonNull<AtomicU64>,
    count: usize,
}

// SAFETY: the mapping is read only through atomics and lives until the view is dropped.
unsafe impl Send for CounterView {}
// SAFETY: as above; loads from several threads are what atomics are for.
unsafe impl Sync for CounterView {}

impl CounterView {
    /// Maps `count` 64-bit counters of a map made with [`MAP_MMAPABLE`].
    ///
    /// # Errors
    /// The kernel cannot map it.
    pub fn map(map: &impl AsRawFd, count: usize) -> io::Result<Self> {
        // SAFETY: a new shared, read-only mapping at an address of the kernel's choice; its length is
        // that of the map, which the kernel checks.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                count * size_of::<u64>(),
                libc::PROT_READ,
                libc::MAP_SHARED,
                map.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(io::Error::last_os_error)?;
        Ok(Self { start, count })
    }

    /// Current value of a counter; `None` after the last.
    #[must_use]
    pub fn load(&self, at: usize) -> Option<u64> {
        if at >= self.count {
            return None;
        }
        // SAFETY: `at` lies within the mapping, which is page-aligned and outlives `self`; the kernel
        // writes it with atomic additions only.
        Some(unsafe { self.start.add(at).as_ref() }.load(Ordering::Relaxed))
    }
}

impl Drop for CounterView {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `map`, and no reference into it is left.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.count * size_of::<u64>()) };
    }
}
