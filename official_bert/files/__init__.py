"""The one door to the file system: local paths, and gs:// and its kin.

Local files are opened by Python itself, so that a command can check its paths
before TensorFlow is imported; everything with a scheme goes to `tf.io.gfile`.
"""

from official_bert.files.folders import (
    replacing_folder,
    require_free_folder,
    size_of_folder,
)
from official_bert.files.reading import (
    BEST,
    beside,
    exists,
    expand,
    is_gzip,
    list_folder,
    numbered_lines,
    open_binary,
    read_lines,
    read_text,
    require,
    require_plain,
    size,
)
from official_bert.files.remote import is_remote
from official_bert.files.writing import (
    make_directory,
    remove,
    remove_folder,
    remove_leftovers,
    remove_leftovers_of,
    rename,
    replacing,
    require_room,
    require_room_for_file,
    sync,
    temporary_name,
    write_text,
    writing,
)

__all__ = [
    "BEST",
    "beside",
    "exists",
    "expand",
    "is_gzip",
    "is_remote",
    "list_folder",
    "make_directory",
    "numbered_lines",
    "open_binary",
    "read_lines",
    "read_text",
    "remove",
    "remove_folder",
    "remove_leftovers",
    "remove_leftovers_of",
    "rename",
    "replacing",
    "replacing_folder",
    "require",
    "require_free_folder",
    "require_plain",
    "require_room",
    "require_room_for_file",
    "size",
    "size_of_folder",
    "sync",
    "temporary_name",
    "write_text",
    "writing",
]
