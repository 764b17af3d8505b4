//! Assembles the counting program (instruction set: Documentation/bpf/standardization/instruction-set.rst).
//!
//! In C it would read
//! ```c
//! SEC("tp_btf/block_rq_issue")
//! int count(struct request *rq) {
//!     struct issue { u64 start; s64 bytes; } now = { rq->start_time_ns, rq->__data_len };
//!     s64 bytes = now.bytes;
//!     if (now.start) {
//!         struct issue *before = bpf_map_lookup_elem(&issued, &rq);
//!         if (before && before->start == now.start) {  /* issued again, as the device had no room for it */
//!             bytes -= before->bytes;
//!             if (bytes <= 0) return 0;
//!             before->bytes = now.bytes;
//!         } else
//!             bpf_map_update_elem(&issued, &rq, &now, BPF_ANY);
//!     }
//!     u8 operation = rq->cmd_flags;                 /* READ, WRITE, ZONE_APPEND; else leave */
//!     if (rq->q->disk->major == LOOP_MAJOR) return 0; /* the disk below has the same bytes */
//!     struct cgroup_subsys_state *css = &rq->bio->bi_blkg->blkcg->css;
//!     for (int level = 0; level < 8 && css; level++, css = css->parent) {
//!         u32 *slot = bpf_map_lookup_elem(&groups, &css->cgroup->kn->id);
//!         if (slot) { counters[*slot].bytes[operation] += bytes; counters[*slot].ios[operation]++; }
//!     }
//! }
//! ```

use std::io;
use std::os::fd::RawFd;

use super::btf::Btf;

/// Groups above a request's own that are looked at: containers sit two or three below the root.
const LEVELS: usize = 8;

/// Where the running kernel keeps what the program needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offsets {
    request_flags: i16,
    request_length: i16,
    request_start: i16,
    request_bio: i16,
    bio_blkg: i16,
    blkg_blkcg: i16,
    blkcg_css: i16,
    css_cgroup: i16,
    css_parent: i16,
    cgroup_node: i16,
    node_id: i16,
    device: Option<Device>,
}

/// The way from a request to its device's number; kernels before 5.15 have another.
#[derive(Clone, Copy, Debug)]
struct Device {
    request_queue: i16,
    queue_disk: i16,
    disk_major: i16,
}

/// Struct and member of each offset.
pub(super) const FIELDS: [(&str, &str); 11] = [
    ("request", "cmd_flags"),
    ("request", "__data_len"),
    ("request", "start_time_ns"),
    ("request", "bio"),
    ("bio", "bi_blkg"),
    ("blkcg_gq", "blkcg"),
    ("blkcg", "css"),
    ("cgroup_subsys_state", "cgroup"),
    ("cgroup_subsys_state", "parent"),
    ("cgroup", "kn"),
    ("kernfs_node", "id"),
];

/// Those of [`Device`].
pub(super) const OF_DEVICE: [(&str, &str); 3] =
    [("request", "q"), ("request_queue", "disk"), ("gendisk", "major")];

impl Offsets {
    pub(super) fn learn(btf: &Btf) -> io::Result<Self> {
        let mut offsets = [0; FIELDS.len()];
        for (offset, (of, member)) in offsets.iter_mut().zip(FIELDS) {
            *offset = btf.offset(of, member)?;
        }
        let [
            request_flags,
            request_length,
            request_start,
            request_bio,
            bio_blkg,
            blkg_blkcg,
            blkcg_css,
            css_cgroup,
            css_parent,
            cgroup_node,
            node_id,
        ] = offsets;
        Ok(Self {
            request_flags,
            request_length,
            request_start,
            request_bio,
            bio_blkg,
            blkg_blkcg,
            blkcg_css,
            css_cgroup,
            css_parent,
            cgroup_node,
            node_id,
            device: Device::learn(btf),
        })
    }
}

impl Device {
    fn learn(btf: &Btf) -> Option<Self> {
        let [request_queue, queue_disk, disk_major] =
            OF_DEVICE.map(|(of, member)| btf.offset(of, member).ok());
        Some(Self {
            request_queue: request_queue?,
            queue_disk: queue_disk?,
            disk_major: disk_major?,
        })
    }
}

#[derive(Clone, Copy)]
pub(super) struct Maps {
    pub groups: RawFd,
    pub counters: RawFd,
    /// What was issued last of each request, by its address: when it was made, and its bytes.
    pub issued: RawFd,
}

/// Registers. `R0` holds results, `R1`… arguments; `R6`…`R9` outlive a call; `R10` is the stack.
#[derive(Clone, Copy)]
#[repr(u64)]
enum Register {
    R0,
    R1,
    R2,
    R3,
    R4,
    Bytes = 6,
    Css = 7,
    Direction = 8,
    Scratch = 9,
    Stack = 10,
}
use Register::{Bytes, Css, Direction, R0, R1, R2, R3, R4, Scratch, Stack};

const LOAD_32: u64 = 0x61;
const LOAD_64: u64 = 0x79;
const STORE_32: u64 = 0x63;
const STORE_64: u64 = 0x7b;
const ATOMIC_64: u64 = 0xdb;
const MOVE: u64 = 0xbf;
const MOVE_NUMBER: u64 = 0xb7;
const ADD: u64 = 0x0f;
const ADD_NUMBER: u64 = 0x07;
const SUBTRACT: u64 = 0x1f;
const AND_NUMBER: u64 = 0x57;
const JUMP_IF: u64 = 0x15;
const JUMP_IF_NOT: u64 = 0x5d;
const JUMP_IF_AT_MOST: u64 = 0xd5;
const JUMP: u64 = 0x05;
const CALL: u64 = 0x85;
const EXIT: u64 = 0x95;
const LOAD_MAP: u64 = 0x18;
const SOURCE_IS_MAP: u64 = 1;
const LOOKUP: i32 = 1;
const UPDATE: i32 = 2;

/// `enum req_op` (`include/linux/blk_types.h`).
const READ: i32 = 0;
const WRITE: i32 = 1;
const ZONE_APPEND: i32 = 7;
const OPERATION_MASK: i32 = 0xff;
/// `LOOP_MAJOR` (`include/uapi/linux/major.h`).
const LOOP: i32 = 7;

/// Where on the stack keys and values of maps are.
const GROUP_KEY: i16 = -8;
const SLOT_KEY: i16 = -16;
const REQUEST_KEY: i16 = -24;
const START_VALUE: i16 = -40;
const BYTES_VALUE: i16 = -32;

/// Where in a slot the counters of writes begin, in bytes.
const WRITES_AT: i32 = 16;

/// A place that jumps lead to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Label {
    First,
    New,
    Write,
    Count,
    Climb(usize),
    Leave,
}

#[derive(Default)]
struct Assembler {
    code: Vec<u64>,
    jumps: Vec<(usize, Label)>,
    labels: Vec<(Label, usize)>,
}

/// One instruction: code, destination, source, offset, number, from the lowest bits up.
fn encode(code: u64, to: Register, from: u64, offset: i16, number: i32) -> u64 {
    code | (to as u64) << 8
        | from << 12
        | u64::from(offset as u16) << 16
        | u64::from(number as u32) << 32
}

impl Assembler {
    fn push(&mut self, code: u64, to: Register, from: u64, offset: i16, number: i32) {
        self.code.push(encode(code, to, from, offset, number));
    }

    fn load(&mut self, code: u64, to: Register, from: Register, offset: i16) {
        self.push(code, to, from as u64, offset, 0);
    }

    fn number(&mut self, code: u64, to: Register, number: i32) {
        self.push(code, to, 0, 0, number);
    }

    fn jump_if(&mut self, register: Register, equals: i32, label: Label) {
        self.branch(JUMP_IF, register, 0, equals, label);
    }

    fn branch(&mut self, code: u64, register: Register, with: u64, number: i32, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.push(code, register, with, 0, number);
    }

    fn jump(&mut self, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.push(JUMP, R0, 0, 0, 0);
    }

    fn label(&mut self, label: Label) {
        self.labels.push((label, self.code.len()));
    }

    /// `register = stack + at`.
    fn address(&mut self, register: Register, at: i16) {
        self.load(MOVE, register, Stack, 0);
        self.number(ADD_NUMBER, register, i32::from(at));
    }

    /// `R0 = helper(map, stack + key_at, R3, R4)`, with one of the helpers for maps.
    fn ask(&mut self, helper: i32, map: RawFd, key_at: i16) {
        self.push(LOAD_MAP, R1, SOURCE_IS_MAP, 0, map);
        self.code.push(0);
        self.address(R2, key_at);
        self.push(CALL, R0, 0, 0, helper);
    }

    fn finish(mut self) -> Vec<u64> {
        for (at, label) in self.jumps {
            let found = self.labels.iter().find(|(known, _)| *known == label);
            let target = found.map_or(at, |(_, target)| *target);
            let offset = (target as i64 - at as i64 - 1) as i16;
            self.code[at] |= u64::from(offset as u16) << 16;
        }
        self.code
    }
}

/// `request_at` is the request's place among the tracepoint's arguments.
pub(super) fn assemble(offsets: Offsets, request_at: i16, maps: Maps) -> Vec<u64> {
    let mut code = Assembler::default();
    begin(&mut code, offsets, request_at);
    leave_if_counted(&mut code, offsets, maps);
    find_group(&mut code, offsets);
    for level in 0..LEVELS {
        climb(&mut code, offsets, maps, level);
    }
    code.label(Label::Leave);
    code.number(MOVE_NUMBER, R0, 0);
    code.push(EXIT, R0, 0, 0, 0);
    code.finish()
}

/// The request is in `Scratch` and on the stack, its length in `Bytes`.
fn begin(code: &mut Assembler, offsets: Offsets, request_at: i16) {
    code.load(LOAD_64, Scratch, R1, request_at);
    code.push(STORE_64, Stack, Scratch as u64, REQUEST_KEY, 0);
    code.load(LOAD_32, Bytes, Scratch, offsets.request_length);
}

/// A device without room gives a request back, which is then issued again, often several times. Only what was merged
/// into it meanwhile counts again, as a request of its own. Where the kernel takes no times, each issue counts.
fn leave_if_counted(code: &mut Assembler, offsets: Offsets, maps: Maps) {
    let start = Direction; // not needed yet, and it outlives a call
    code.load(LOAD_64, start, Scratch, offsets.request_start);
    code.jump_if(start, 0, Label::New);
    code.ask(LOOKUP, maps.issued, REQUEST_KEY);
    code.jump_if(R0, 0, Label::First);
    code.load(LOAD_64, R1, R0, 0);
    code.branch(JUMP_IF_NOT, R1, start as u64, 0, Label::First);
    code.load(LOAD_64, R1, R0, 8);
    code.load(MOVE, R2, Bytes, 0);
    code.load(SUBTRACT, Bytes, R1, 0);
    code.branch(JUMP_IF_AT_MOST, Bytes, 0, 0, Label::Leave);
    code.push(STORE_64, R0, R2 as u64, 8, 0);
    code.jump(Label::New);
    code.label(Label::First);
    code.push(STORE_64, Stack, start as u64, START_VALUE, 0);
    code.push(STORE_64, Stack, Bytes as u64, BYTES_VALUE, 0);
    code.address(R3, START_VALUE);
    code.number(MOVE_NUMBER, R4, 0);
    code.ask(UPDATE, maps.issued, REQUEST_KEY);
    code.label(Label::New);
}

/// Tells reads from writes and finds the `blkcg` of the request's first bio.
///
/// Requests never merge bios of different groups (`blk_cgroup_mergeable`), so the first stands for all.
fn find_group(code: &mut Assembler, offsets: Offsets) {
    code.load(LOAD_32, R2, Scratch, offsets.request_flags);
    code.number(AND_NUMBER, R2, OPERATION_MASK);
    code.number(MOVE_NUMBER, Direction, 0);
    code.jump_if(R2, READ, Label::Count);
    code.jump_if(R2, WRITE, Label::Write);
    code.jump_if(R2, ZONE_APPEND, Label::Write);
    code.jump(Label::Leave);
    code.label(Label::Write);
    code.number(MOVE_NUMBER, Direction, WRITES_AT);
    code.label(Label::Count);
    if let Some(device) = offsets.device {
        leave_loops(code, device);
    }
    code.load(LOAD_64, Scratch, Scratch, offsets.request_bio);
    code.jump_if(Scratch, 0, Label::Leave);
    code.load(LOAD_64, Scratch, Scratch, offsets.bio_blkg);
    code.jump_if(Scratch, 0, Label::Leave);
    code.load(LOAD_64, Css, Scratch, offsets.blkg_blkcg);
    code.jump_if(Css, 0, Label::Leave);
}

/// What a loop device is asked for is asked of the disk below its file too, in the same group's name.
fn leave_loops(code: &mut Assembler, device: Device) {
    code.load(LOAD_64, R2, Scratch, device.request_queue);
    code.jump_if(R2, 0, Label::Leave);
    code.load(LOAD_64, R2, R2, device.queue_disk);
    code.jump_if(R2, 0, Label::Leave);
    code.load(LOAD_32, R2, R2, device.disk_major);
    code.jump_if(R2, LOOP, Label::Leave);
}

/// Counts for one group and goes up to its parent. The first one's css lies inside its `blkcg`.
fn climb(code: &mut Assembler, offsets: Offsets, maps: Maps, level: usize) {
    let css_at = if level == 0 { offsets.blkcg_css } else { 0 };
    code.load(LOAD_64, Scratch, Css, css_at + offsets.css_cgroup);
    code.jump_if(Scratch, 0, Label::Leave);
    code.load(LOAD_64, Scratch, Scratch, offsets.cgroup_node);
    code.jump_if(Scratch, 0, Label::Leave);
    code.load(LOAD_64, Scratch, Scratch, offsets.node_id);
    code.push(STORE_64, Stack, Scratch as u64, GROUP_KEY, 0);
    code.ask(LOOKUP, maps.groups, GROUP_KEY);
    code.jump_if(R0, 0, Label::Climb(level));
    code.load(LOAD_32, R1, R0, 0);
    code.push(STORE_32, Stack, R1 as u64, SLOT_KEY, 0);
    code.ask(LOOKUP, maps.counters, SLOT_KEY);
    code.jump_if(R0, 0, Label::Climb(level));
    code.load(ADD, R0, Direction, 0);
    code.push(ATOMIC_64, R0, Bytes as u64, 0, 0);
    code.number(MOVE_NUMBER, R1, 1);
    code.push(ATOMIC_64, R0, R1 as u64, 8, 0);
    code.label(Label::Climb(level));
    code.load(LOAD_64, Css, Css, css_at + offsets.css_parent);
    code.jump_if(Css, 0, Label::Leave);
}
