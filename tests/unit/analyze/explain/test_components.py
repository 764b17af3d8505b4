"""The table of components, on stacks that tare-probe sampled on Linux 6.18: Redis behind a bridge and DNAT."""

from __future__ import annotations

import pytest

from tare.analyze.explain.components import NO_SYMBOLS, NOT_NAMED, USER, Table, components

SEND = (
    "[redis-server];[libc.so.6];entry_SYSCALL_64_after_hwframe_[k];do_syscall_64_[k];__x64_sys_sendto_[k];"
    "__sys_sendto_[k];tcp_sendmsg_[k];tcp_sendmsg_locked_[k];__tcp_push_pending_frames_[k];tcp_write_xmit_[k];"
    "__tcp_transmit_skb_[k];__ip_queue_xmit_[k]"
)
RECEIVE = (
    f"{SEND};ip_output_[k];ip_finish_output2_[k];__dev_queue_xmit_[k];__local_bh_enable_ip_[k];do_softirq_[k];"
    "handle_softirqs_[k];net_rx_action_[k];__napi_poll_[k];process_backlog_[k];__netif_receive_skb_one_core_[k]"
)


@pytest.mark.parametrize(
    ("stack", "component"),
    [
        (SEND, "tcp-ip"),
        (f"{SEND};ip_local_out_[k];nf_hook_slow_[k];nf_conntrack_in_[k];nf_conntrack_tcp_packet_[k]", "netfilter"),
        (f"{SEND};nf_hook_slow_[k];nft_do_chain_ipv4_[k];nft_do_chain_[k]", "netfilter"),
        (f"{RECEIVE};br_handle_frame_[k];br_nf_pre_routing_[k];nf_hook_slow_[k]", "netfilter"),
        (f"{RECEIVE};br_handle_frame_[k];br_handle_frame_finish_[k];br_fdb_update_[k]", "bridge"),
        (f"{RECEIVE}", "net-core"),
        (f"{SEND};ip_output_[k];dev_hard_start_xmit_[k];veth_xmit_[k];_raw_spin_lock_[k]", "bridge"),
        (f"{SEND};ip_output_[k];dev_hard_start_xmit_[k];loopback_xmit_[k]", "loopback"),
        # Who wakes the receiver up pays for it where the lock is let go.
        (f"{RECEIVE};tcp_v4_rcv_[k];sock_def_readable_[k];_raw_spin_unlock_irqrestore_[k]", "scheduler"),
        ("[libc.so.6];entry_SYSCALL_64_after_hwframe_[k];do_syscall_64_[k]", "syscall"),
        ("[x];do_syscall_64_[k];__x64_sys_epoll_ctl_[k];do_epoll_ctl_[k]", "poll"),
        ("[x];do_syscall_64_[k];__x64_sys_recvfrom_[k];tcp_recvmsg_[k];skb_copy_datagram_iter_[k]", "copying"),
        ("[x];do_syscall_64_[k];syscall_trace_enter_[k];__seccomp_filter_[k];bpf_prog_1_[k]", "seccomp"),
        ("[x];asm_exc_page_fault_[k];exc_page_fault_[k];handle_mm_fault_[k];__mem_cgroup_charge_[k]", "cgroup"),
        ("[x];asm_exc_page_fault_[k];exc_page_fault_[k];handle_mm_fault_[k];clear_page_erms_[k]", "memory"),
        ("[x];do_syscall_64_[k];__x64_sys_futex_[k];do_futex_[k];futex_wait_[k];_raw_spin_lock_[k]", "futex"),
        ("[x];do_syscall_64_[k];vfs_write_[k];ovl_write_iter_[k];ext4_file_write_iter_[k]", "filesystem"),
        # A copy of a whole file is the overlay's doing, in whichever layer it happens to be.
        ("[x];ovl_maybe_copy_up_[k];ovl_copy_up_flags_[k];vfs_write_[k];ext4_da_write_begin_[k]", "overlayfs"),
        ("[mariadbd];[libc.so.6]", USER),
        ("", NOT_NAMED),
        ("[more stacks]", NOT_NAMED),
        ("[x];[unknown]_[k];[unknown]_[k]", NO_SYMBOLS),
    ],
)  # fmt: skip
def test_real_stacks_belong_to_what_the_cpu_was_doing(stack: str, component: str) -> None:
    assert components().of_stack(stack) == component


def test_work_that_no_rule_names_is_not_hidden_in_the_system_call_around_it() -> None:
    assert components().of_stack("[x];do_syscall_64_[k];__x64_sys_new_[k];brand_new_function_[k]") == NOT_NAMED
    assert components().of_stack("[x];do_syscall_64_[k];__x64_sys_new_[k];_raw_spin_lock_[k]") == "syscall"


def test_the_longest_beginning_that_fits_decides() -> None:
    assert components().of_functions(["copy_from_user_nofault"]) == "copying"
    assert components().of_functions(["copy_process"]) == "processes"
    assert components().of_functions(["sock_def_readable"]) == "scheduler"


def test_a_pattern_that_stands_in_two_components_is_refused() -> None:
    two = [{"name": name, "title": name, "source": "", "functions": ["tcp_*"]} for name in ("a", "b")]
    with pytest.raises(ValueError, match="'a' and in 'b'"):
        Table({"version": "1", "components": two})


def test_a_pattern_is_open_at_its_end_alone() -> None:
    with pytest.raises(ValueError, match="only a name's end"):
        Table({"version": "1", "neutral": ["copy_*_user"], "components": []})


def test_every_component_has_a_title_and_a_source() -> None:
    names = [each.name for each in components().components]
    assert len(names) == len(set(names))
    assert all(each.title and each.source for each in components().components)
    assert components().title("netfilter") == "netfilter, conntrack, NAT"
