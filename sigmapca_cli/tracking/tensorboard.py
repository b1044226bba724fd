"""TensorBoard: one event file for each process that worked on the run, in the folder `tensorboard` of the run."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from sigmapca_cli.system.untrusted_files import refuse_link
from sigmapca_cli.tracking.protocols import Rows, Tracked

FOLDER = "tensorboard"


class TensorBoard:
    """Writes scalars, and the configuration as a text.

    A process that goes on with a run tells TensorBoard from which step on it writes, so that values after that step
    which an earlier process wrote are not shown.
    """

    def __init__(self, run: Tracked) -> None:
        folder = Path(run.place) / run.name if run.place else run.folder / FOLDER
        refuse_link(folder)
        folder.mkdir(parents=True, exist_ok=True)
        earlier = any(folder.glob("events.out.tfevents.*"))
        self.id, self.step = FOLDER, run.resumed or 0
        self.writer = EventFileWriter(str(folder), flush_secs=10)
        if earlier:
            self.add(
                session_log=SessionLog(status=SessionLog.START), step=self.step + 1 if run.resumed else 0
            )
        if not run.resumed:
            self.describe(run)

    def add(self, **parts: Any) -> None:
        """Append one event."""
        self.writer.add_event(Event(wall_time=time.time(), **parts))

    def describe(self, run: Tracked) -> None:
        """Write note, tags and configuration as a text."""
        about = [run.note] if run.note else []
        about += [f"tags: {', '.join(run.tags)}"] if run.tags else []
        text = "\n\n".join([*about, "\n".join(f"    {key}: {value}" for key, value in run.config.items())])
        shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)])
        tensor = TensorProto(dtype="DT_STRING", string_val=[text.encode()], tensor_shape=shape)
        metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text"))
        value = Summary.Value(tag="configuration/text_summary", metadata=metadata, tensor=tensor)
        self.add(summary=Summary(value=[value]), step=0)

    def log(self, rows: Rows) -> None:
        """Append values to the curves."""
        for step, values in rows:
            self.scalars(step, values)
        self.writer.flush()

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Append one event with these scalars."""
        summary = Summary(value=[Summary.Value(tag=n, simple_value=v) for n, v in values.items()])
        self.add(summary=summary, step=step)
        self.step = max(step, self.step)

    def finish(self, status: str, results: Mapping[str, float]) -> None:
        """Write the results as scalars at the last step, and close the file."""
        if results:
            self.scalars(self.step, {f"evaluation/{name}": value for name, value in results.items()})
        self.writer.close()
