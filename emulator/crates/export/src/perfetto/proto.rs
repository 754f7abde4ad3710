//! The messages of perfetto_trace.proto that are used. Names are ours, with Perfetto's beside them; the numbers are Perfetto's.

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Trace {
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<Packet>,
}

/// `TracePacket`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Packet {
    /// Nanoseconds.
    #[prost(uint64, tag = "8")]
    pub timestamp: u64,
    /// `trusted_packet_sequence_id`.
    #[prost(uint32, tag = "10")]
    pub sequence: u32,
    /// `track_event`.
    #[prost(message, optional, tag = "11")]
    pub event: Option<TrackEvent>,
    /// `track_descriptor`.
    #[prost(message, optional, tag = "60")]
    pub track: Option<Track>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TrackEvent {
    #[prost(int32, tag = "9")]
    pub r#type: i32,
    /// `track_uuid`.
    #[prost(uint64, tag = "11")]
    pub track: u64,
    /// `double_counter_value`: its absence would not mean 0.
    #[prost(double, required, tag = "44")]
    pub value: f64,
}

/// `TrackDescriptor`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Track {
    /// `uuid`.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(string, tag = "2")]
    pub name: String,
    /// `parent_uuid`.
    #[prost(uint64, tag = "5")]
    pub parent: u64,
    #[prost(message, optional, tag = "8")]
    pub counter: Option<Counter>,
    /// `child_ordering`.
    #[prost(int32, tag = "11")]
    pub ordering: i32,
    /// `sibling_order_rank`.
    #[prost(int32, tag = "12")]
    pub rank: i32,
}

/// `CounterDescriptor`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Counter {
    /// `unit_name`.
    #[prost(string, tag = "6")]
    pub unit: String,
    /// `y_axis_share_key`.
    #[prost(string, tag = "7")]
    pub scale: String,
}
