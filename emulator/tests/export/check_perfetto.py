"""Reads a trace by Perfetto's published messages; prints each counter and its mean over the trace."""

import sys
from collections import defaultdict

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

trace = Trace()
with open(sys.argv[1], "rb") as file:
    trace.ParseFromString(file.read())

tracks = {}
changes = defaultdict(list)
for packet in trace.packet:
    assert packet.trusted_packet_sequence_id == 1
    if packet.HasField("track_descriptor"):
        tracks[packet.track_descriptor.uuid] = packet.track_descriptor
    else:
        assert packet.track_event.type == TrackEvent.TYPE_COUNTER
        assert tracks[packet.track_event.track_uuid].HasField("counter")
        changes[packet.track_event.track_uuid].append(
            (packet.timestamp, packet.track_event.double_counter_value)
        )

times = [time for values in changes.values() for time, _ in values]
start, end = min(times), max(times)
for uuid, values in changes.items():
    track = tracks[uuid]
    ends = [time for time, _ in values[1:]] + [end]
    area = sum(value * (until - time) for (time, value), until in zip(values, ends))
    print(f"{tracks[track.parent_uuid].name}: {track.name} {area / (end - start):.3f}")
