//! Network interfaces, of the host or of a named namespace.

use crate::schema::table;

table! {
    /// Network interfaces, one row each, named `NAMESPACE/INTERFACE`; the host's own namespace is `host`.
    "interface" {
        T0_NS "t0_ns" Instant Exact "CLOCK_MONOTONIC" "before the kernel was asked";
        T1_NS "t1_ns" Instant Exact "CLOCK_MONOTONIC" "after it had answered";
        RX_BYTES "rx_bytes" Counter Exact "/proc/PID/net/dev" "bytes received";
        RX_PACKETS "rx_packets" Counter Exact "/proc/PID/net/dev" "packets received";
        RX_ERRORS "rx_errors" Counter Exact "/proc/PID/net/dev" "receive errors";
        RX_DROPPED "rx_dropped" Counter Exact "/proc/PID/net/dev" "packets dropped on receipt";
        TX_BYTES "tx_bytes" Counter Exact "/proc/PID/net/dev" "bytes sent";
        TX_PACKETS "tx_packets" Counter Exact "/proc/PID/net/dev" "packets sent";
        TX_ERRORS "tx_errors" Counter Exact "/proc/PID/net/dev" "send errors";
        TX_DROPPED "tx_dropped" Counter Exact "/proc/PID/net/dev" "packets dropped when sent";
    }
}
