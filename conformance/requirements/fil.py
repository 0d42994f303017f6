"""Files: reading and writing what commands see."""

from conformance.requirements.requirement import Requirement

FIL_01 = Requirement(
    "FIL-01",
    "M",
    ("004",),
    "`read_file` gives the bytes of the file that commands see, with relative paths in "
    "the workspace.",
)
FIL_02 = Requirement(
    "FIL-02",
    "R",
    ("ours",),
    "Reading gives back exactly what was written, any bytes up to 10 MB under awkward "
    "names too; parent folders are made, and a shorter overwrite truncates.",
)
FIL_03 = Requirement(
    "FIL-03",
    "R",
    ("ours",),
    "A missing file raises `FileNotFoundError`, a folder `IsADirectoryError` and a "
    "refusal `PermissionError`, each naming the path.",
)
FIL_04 = Requirement(
    "FIL-04",
    "R",
    ("ours",),
    "With isolation no path, dot segment or link that was made inside lets a read or "
    "write touch the host outside of the workspace.",
)
FIL_05 = Requirement(
    "FIL-05",
    "S",
    ("ours",),
    "A write happens as a whole or not at all.",
)
