"""Bad traces: every field of every format, the files as a whole, and what they are packed in."""
import json
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from fuzz_cases import (
    NEGATIVE,
    NO_GZIP,
    NO_NUMBERS,
    NO_TEXT,
    NO_WHOLE,
    NO_XZ,
    Case,
    drawn,
    packed,
    short,
    with_field,
)
from subak.workload.readers import READERS

AMOUNT, WHOLE = (*NO_NUMBERS, *NEGATIVE), (*NO_NUMBERS, *NEGATIVE, *NO_WHOLE)
GIVEN = ("", *WHOLE)  # a field between commas that must be given


class Format(NamedTuple):
    """A trace in order, and what no field of it may hold."""

    reader: str
    file: str  # below SOURCE, or SOURCE itself
    lines: tuple[str, ...]
    separator: str
    bad: Mapping[int, tuple[str, ...]]  # by the field's place
    source: str
    beside: Mapping[str, str] = {}
    head: int = 0  # lines that name the columns
    options: tuple[str, ...] = ()


TR = Format("tr", "x.tr", ("0 2 2.5 2 3", "1 1 4 4", "7.5 3 1 1 1 1"), " ",
            {0: (*AMOUNT, "1e13"), 1: (*WHOLE, "0", "7", "3.0"), 2: (*AMOUNT, "1e13"), 3: (*AMOUNT, "1e13", "1e308")},
            "x.tr")
SWF_LINE = "{} {} 3 60 2 -1 -1 2 90 -1 1 4 1 -1 1 -1 -1 -1"
SWF_NUMBER = ("x", "nan", "inf", "-inf", "1e400", "0x10", "1;5", "1e17", "-1e17", "1_0", "9" * 400)
SWF_WHOLE = (*SWF_NUMBER, "1.5", "0.25")
SWF_TIME = (*SWF_NUMBER, "-2", "-0.5", "-1.0001", "2e12")
SWF = Format("swf", "x.swf", tuple(SWF_LINE.format(row + 1, 10 * row) for row in range(4)), " ", {
    0: SWF_WHOLE, 1: SWF_TIME, 3: SWF_TIME, 4: (*SWF_WHOLE, "2147483648"), 7: (*SWF_WHOLE, "2147483648", "1e12"),
    8: SWF_TIME, 10: SWF_WHOLE, 11: SWF_WHOLE, 14: SWF_WHOLE}, "x.swf")
FRONTIER = Format("frontier", "x.swf", tuple(f"{line} -1 -1 16 -1 frontier:excl:2x112" for line in (
    f"{row + 1} {10 * row} 3 60 2 -1 -1 2 90 -1 1 4 1 -1 1 1" for row in range(4))), " ", {
    **SWF.bad, 18: (*SWF_WHOLE, "2147483648"), 20: ("x", "16x112", "a:b:0x4", "a:b:4x0", "a:b:4", "a:b:9999999999x1", "-1")},
    "x.swf")
SWIM = Format("swim", "x.tsv", tuple(f"job{row}\t{row}\t1\t2000\t30\t40" for row in range(4)), "\t", {
    1: (*AMOUNT, "1e13"), 2: AMOUNT, 3: (*AMOUNT, "1e308", "1e18"), 4: (*AMOUNT, "1e308", "1e20"), 5: (*AMOUNT, "1e308")},
    "x.tsv")
EVENTS = ("0,,1,0,,0,u,1,2,0.1,0.2,0,0", "5000000,,1,0,7,1,u,1,2,0.1,0.2,0,0", "9000000,,1,0,7,4,u,1,2,0.1,0.2,0,0")
MACHINES = ("0,7,0,p,0.5,0.5", "0,8,0,p,1,1", "4000000,8,1,p,1,1")
CONSTRAINTS = ("0,1,0,0,rack,a", "0,1,0,2,kernel,3")
ATTRIBUTES = ("0,7,rack,a,0", "0,7,kernel,2,0")
PARTS = {"task_events": EVENTS, "machine_events": MACHINES, "task_constraints": CONSTRAINTS,
         "machine_attributes": ATTRIBUTES}
SHARE = ("x", "-0.5", "nan", "inf", "1e400", "21.5", "1e9", "0.1 cores")
OPTIONAL = ("x", "1.5", "9223372036854775808", "nan")
GOOGLE_BAD: dict[str, dict[int, tuple[str, ...]]] = {
    "task_events": {0: GIVEN, 2: GIVEN, 3: (*GIVEN, "2147483648"), 4: OPTIONAL,
                    5: (*GIVEN, "9", "255", "256", "4294967296"), 8: (*GIVEN, "32768"), 9: SHARE, 10: SHARE, 12: OPTIONAL},
    "machine_events": {0: GIVEN, 1: GIVEN, 2: (*GIVEN, "3", "256"), 4: SHARE, 5: SHARE},
    "task_constraints": {0: GIVEN, 1: GIVEN, 2: (*GIVEN, "2147483648", "4294967296"), 3: (*GIVEN, "4"), 4: ("",)},
    "machine_attributes": {0: GIVEN, 1: GIVEN, 2: ("",), 4: OPTIONAL},
}


def _google(part: str) -> Format:
    beside = {f"T/{name}/part-0.csv": "".join(f"{line}\n" for line in lines)
              for name, lines in PARTS.items() if name != part}
    return Format("google2011", f"T/{part}/part-0.csv", PARTS[part], ",", GOOGLE_BAD[part], "T", beside)


SECONDS = ("x", "-1", "nan", "inf", "1e400", "1e13", "-0.5")
ALIBABA_LINES = ("M1,2,j_1,1,Terminated,100,110,100,0.5", "R2_1,1,j_1,1,Terminated,110,130,50,0.5")
ALIBABA = Format("alibaba2018", "T/batch_task.csv", ALIBABA_LINES, ",", {
    1: ("x", "1.5", "99999999999999999999", "1e3"), 5: SECONDS, 6: SECONDS, 7: ("x", "nan", "inf", "1e30"),
    8: ("x", "nan", "inf", "1e30", "250000")}, "T")
INSTANCE_LINES = ("ins_1,M1,j_1,1,Terminated,100,110,m_7,1,1,50,90,0.1,0.2",
                  "ins_2,M1,j_1,1,Terminated,100,109,m_7,1,1,50,90,0.1,0.2")
INSTANCES = Format("alibaba2018", "T/batch_instance.csv", INSTANCE_LINES, ",",
                   {5: ("x", "-1", "nan", "inf", "1e400"), 6: SECONDS}, "T",
                   {"T/batch_task.csv": "".join(f"{line}\n" for line in ALIBABA_LINES)})
SPAR = Format("alibaba2018", "x.csv", ("5,j_1,M1,10,100,0.5,2", "5,j_1,R2_1,10,100,0.5,1"), ",", {
    0: SECONDS, 3: SECONDS, 4: ("x", "nan", "inf", "1e30"), 5: ("x", "nan", "inf"), 6: ("x", "1.5", "1e3")}, "x.csv")
POD_HEAD = ("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,"
            "scheduled_time")
POD_LINES = (POD_HEAD, "p0,4000,1024,1,460,T4,LS,Succeeded,10,100,40", "p1,4000,1024,0,0,,BE,Failed,20,100,40")
POD_NUMBER = ("", *AMOUNT, "1e12")
OPENB = Format("openb", "T/openb_pod_list_default.csv", POD_LINES, ",", {
    0: ("",), 1: POD_NUMBER, 2: POD_NUMBER, 3: ("", *WHOLE, "99999999"), 4: (*POD_NUMBER, "1001"),
    5: ("|", "T4|", "|T4", "T4||P4"), 6: ("", "ls", "Best", "0"), 7: ("", "Done", "running", "0"),
    8: ("", *AMOUNT, "1e13"), 9: AMOUNT, 10: AMOUNT}, "T", head=1)
NODE_LINES = ("sn,cpu_milli,memory_mib,gpu,model", "n0,32000,262144,0,", "n1,96000,786432,8,T4")
NODES = Format("openb", "T/openb_node_list_all_node.csv", NODE_LINES, ",", {
    0: ("",), 1: POD_NUMBER, 2: POD_NUMBER, 3: ("", *WHOLE, "99999999")}, "T",
    {"T/openb_pod_list_default.csv": "".join(f"{line}\n" for line in POD_LINES)}, 1)
# Words for nothing are no mistake where a field may be unknown
MISTAKES = tuple(value for value in NO_NUMBERS if value.lower() not in ("nan", "none"))
TABLE = Format("table", "x.csv", ("id,submit,run,mem,prio,queue", "a,0,5,4G,1,q/r", "b,10,7.5,100,2,q", "c,20,1,0.5,3,q"), ",", {
    1: (*MISTAKES, "-1", "1e13", "12:00"), 2: (*MISTAKES, "-0.5", "1e13", "01:00:00"), 3: ("x", "-1", "4Q", "1e30", "4 G B", "G"),
    4: (*MISTAKES, "1.5", "3000000000", "1e300"), 5: ("a//b", "/a", "a/", "a/\x01")}, "x.csv", {}, 1,
    ("--map", "job=id,arrival=submit[s],run_time=run[s]", "--map", "memory=mem[MiB],priority=prio,queue=queue"))
INSTANT = ("x", "2020-13-01 00:00:00", "2020-06-09 25:00:00", "2020-06-31", "18:41:01")
SACCT_LINE = "{}|COMPLETED|1704110{}00|1704111000|01:00:00|1-00:00:00|2|cpu=4,mem=16G,node=2"
SACCT = Format("sacct", "x.txt", ("JobID|State|Submit|Start|Elapsed|Timelimit|NNodes|ReqTRES",
                                  *(SACCT_LINE.format(row, row) for row in (1, 2, 3))), "|", {
    1: ("x", "DONE", "completed", "COMPLETE"), 2: (*INSTANT, "1e13"), 3: (*INSTANT, "1e13"),
    4: ("x", "1:2", "-5", "1e13", "25:61:00", "1-02:03"), 5: ("x", "-1", "1:2"), 6: ("x", "1.5", "-1", "99999999999"),
    7: ("x", "cpu=x", "mem=4Q,cpu=1", "cpu=1e30", "cpu=99999999999", "cpu=-1")}, "x.txt", {}, 1)
ENDS = Format("sacct", "ends.txt", ("JobID|State|Submit|Start|End|ReqTRES", *(
    f"{row}|COMPLETED|1704110{row}00|1704111000|17041{row}4600|cpu=4" for row in (1, 2, 3))), "|",
    {4: (*INSTANT, "1e13")}, "ends.txt", {}, 1)
HELIOS_LINE = "{},u1,vc1,8,16,2,COMPLETED,2020-06-09 18:4{}:01,2020-06-09 18:41:01,2020-06-10 04:55:09,36848,0"
HELIOS = Format("helios", "cluster_log.csv", (
    "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue",
    *(HELIOS_LINE.format(row, row) for row in (1, 2, 3))), ",", {
    0: ("",), 3: ("", *MISTAKES, "-1", "1.5"), 4: ("", *MISTAKES, "-1"), 5: ("", *MISTAKES, "1e10"), 6: ("", "x", "Done"),
    7: INSTANT, 8: INSTANT, 9: INSTANT}, "cluster_log.csv", {}, 1)
AZURE = Format("azure", "vmtable.csv", ("v1,s1,d1,0,2591400,91.7,0.7,20.7,Delay-insensitive,8,32",
                                        "v2,s1,d1,600,900,91.7,0.7,20.7,Unknown,>24,>64"), ",", {
    0: ("",), 3: (*NO_NUMBERS, "-1", "1e13"), 4: (*NO_NUMBERS, "-1", "1e13"), 8: ("", "x", "interactive"),
    9: ("", *NO_NUMBERS, ">25", "-1", "1e9"), 10: ("", *NO_NUMBERS, ">24", "-1", "1e9")}, "vmtable.csv")
# Each is deleted: one that still ran would run to the last instant, which any line may move
DLRM = Format("dlrm2025", "disaggregated_DLRM_trace.csv", (
    "instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,rdma_limit,memory_request,"
    "memory_limit,disk_request,disk_limit,max_instance_per_node,creation_time,scheduled_time,deletion_time",
    "instance_0,HN,app_0,16,16,2,2,20,20,100.0,100.0,500.0,600.0,4,,,900.0",
    *(f"instance_{row},CN,app_1,48,48,0,0,3,3,200.0,200.0,90.0,110.0,-1,{row}00.0,{row}10.0,2000.0" for row in (1, 2))), ",", {
    0: ("",), 1: ("", "x", "hn", "GPU"), 2: ("",), **dict.fromkeys((3, 5, 7, 9, 11), ("", *AMOUNT, "1e10")),
    **dict.fromkeys((14, 15, 16), (*MISTAKES, "None", *NEGATIVE, "1e13"))}, "disaggregated_DLRM_trace.csv", {}, 1)
SUPERCLOUD_LINE = "{},0,4294967294,77,1,40,xeon,3,60,1609735{}00,1609736000,1609738610,0,1=40,2=348000,4=1,1002=2"
SUPERCLOUD = Format("supercloud", "slurm-log.csv", (
    "id_job,id_array_job,id_array_task,id_user,nodes_alloc,cpus_req,partition,state,timelimit,time_submit,time_start,"
    "time_end,time_suspended,tres_alloc", *(SUPERCLOUD_LINE.format(row, row).replace("1=", '"1=') + '"' for row in (1, 2, 3))),
    ",", {0: ("", "x"), 4: ("x", "1.5", "-1"), 7: ("x", "99"), 9: ("x", "1e13", "nan")}, "slurm-log.csv", {}, 1)
ACME_LINE = "{},u,2,16,32,SFT,COMPLETED,2023-03-01 00:1{}:22+08:00,2023-03-01 00:20:54+08:00,2023-03-01 00:40:51+08:00"
ACME = Format("acme", "trace_seren.csv", (
    "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time",
    *(ACME_LINE.format(row, row) for row in (1, 2, 3))), ",", {
    2: ("x", "1.5", "-1"), 3: ("x", "-1"), 4: ("x", "1e30"), 7: INSTANT, 8: INSTANT, 9: INSTANT}, "trace_seren.csv", {}, 1)
PAI = Format("pai2020", "pai_task_table.csv", tuple(
    f"job{row},worker,2.0,Terminated,{row}00.0,900.0,600.0,29.296875,50.0,T4" for row in (1, 2, 3)), ",", {
    2: ("x", "1.5", "-1"), 4: ("x", "-1", "1e13"), 6: ("x", "-1"), 7: ("x", "1e30"), 8: ("x", "-0.5")}, "pai_task_table.csv")
PAI_JOBS = Format("pai2020", "T/pai_job_table.csv", tuple(
    f"job{row},i{row},ann,Terminated,{row}0.0,900.0" for row in (1, 2, 3)), ",", {
    0: ("",), 4: ("x", "-1", "1e13")}, "T", {"T/pai_task_table.csv": "".join(f"{line}\n" for line in PAI.lines)})
FDATA = Format("fdata", "23_03.csv", (
    "jid,usr,adt,sdt,edt,elpl,pri,exit state,nnuma,cnumat", *(
        f"j{row},u,2023-03-01 09:0{row}:00,2023-03-01 09:10:00,2023-03-01 09:30:00,3600,127,completed,2,96"
        for row in (1, 2, 3))), ",", {2: INSTANT, 3: INSTANT, 5: ("x", "-1"), 8: ("x", "1.5"), 9: ("x", "-1")},
    "23_03.csv", {}, 1)
PM100 = Format("pm100", "job_table.csv", (
    "job_id,user_id,partition,submit_time,start_time,end_time,time_limit,job_state,num_nodes_alloc,num_cores_alloc,"
    "num_gpus_alloc", *(f"{row},7,1,2020-05-06 08:0{row}:00Z,2020-05-06 08:10:00Z,2020-05-06 09:10:00Z,1440,COMPLETED,1,128,4"
                        for row in (1, 2, 3))), ",", {
    3: INSTANT, 6: ("x", "-1"), 8: ("x", "1.5"), 9: ("x", "-1"), 10: ("x", "-1")}, "job_table.csv", {}, 1)
IN2P3 = Format("in2p3", "09.tsv", (
    "jobid\tuser\taccount\tpartition\tstate\tsubmit\tstart\tend\telapsed\ttimelimit\talloccpus\tallocgpus", *(
        f"{row}\tu\ta\thtc\tCOMPLETED\t17251488{row}0\t1725148860\t1725152460\t3600\t86400\t1\t0"
        for row in (1, 2, 3))), "\t", {
    5: ("x", "-1", "1e15"), 6: ("x",), 8: ("x", "-1", "1e13"), 9: ("x", "-1"), 10: ("x", "-1"), 11: ("x", "-1")}, "09.tsv",
    {}, 1)
INSTANCE_HEAD = "time,type,collection_id,priority,instance_index,resource_request.cpus,resource_request.memory"
INSTANCE_ROWS = (INSTANCE_HEAD, "0,0,1,200,0,0.1,0.2", "600000000,3,1,200,0,0.1,0.2", "900000000,6,1,200,0,0.1,0.2")
BORG_WHOLE = ("x", "-1", "1.5", "nan", "9223372036854775808", "0x10")
BORG_SHARE = ("x", "-0.5", "nan", "inf", "1e400", "21.5")
BORG = Format("google2019", "T/instance_events.csv", INSTANCE_ROWS, ",", {
    0: ("", *BORG_WHOLE), 1: ("", "x", "11", "-1", "submit", "1.5"), 2: ("", *BORG_WHOLE), 3: ("x", "-1", "32768", "1.5"),
    4: ("", *BORG_WHOLE, "2147483648"), 5: BORG_SHARE, 6: BORG_SHARE}, "T", {}, 1)
BORG_MACHINES = Format("google2019", "T/machine_events.csv", (
    "time,machine_id,type,platform_id,capacity.cpus,capacity.memory", "0,7,1,p,0.5,0.25", "0,8,1,p,1,1"), ",", {
    0: ("", *BORG_WHOLE), 1: ("", *BORG_WHOLE), 2: ("", "x", "0", "4", "EVENT_TYPE_UNKNOWN"), 4: BORG_SHARE, 5: BORG_SHARE}, "T",
    {"T/instance_events.csv": "".join(f"{line}\n" for line in INSTANCE_ROWS)}, 1)
FORMATS = {"tr": TR, "swf": SWF, "frontier": FRONTIER, "swim": SWIM, **{f"google-{part}": _google(part) for part in PARTS},
           "alibaba": ALIBABA, "alibaba-instances": INSTANCES, "alibaba-spar": SPAR, "openb": OPENB, "openb-nodes": NODES,
           "table": TABLE, "sacct": SACCT, "sacct-ends": ENDS, "supercloud": SUPERCLOUD, "acme": ACME, "pai2020": PAI,
           "pai2020-jobs": PAI_JOBS, "fdata": FDATA, "pm100": PM100, "in2p3": IN2P3, "helios": HELIOS, "azure": AZURE,
           "dlrm2025": DLRM,
           "google2019": BORG, "google2019-machines": BORG_MACHINES}
JSON_READERS = ("rumen", "philly", "pods", "wfformat")  # whose cases are below


def field_cases() -> Iterator[Case]:
    """One bad field of one line."""
    for name, form in FORMATS.items():
        for place, values in form.bad.items():
            for value in values:
                case = f"trace/{name}/field-{place}/{short(value)}"
                text = with_field(form.lines[form.head:], place, value, form.separator, case)
                yield _case(case, form, "".join(f"{line}\n" for line in form.lines[: form.head]) + text)


def _case(name: str, form: Format, text: str | bytes, pack: str | None = None, odd: bool = False) -> Case:
    """Return a case of one file, packed as drawn where *pack* does not say."""
    draws = drawn(name)
    packing = draws.choice(("", "", ".gz", ".xz")) if pack is None else pack
    content = text.encode() if isinstance(text, str) else text
    if not odd and content and draws.random() < 0.2:
        content = content.replace(b"\n", b"\r\n")
    if draws.random() < 0.2:
        content = content.rstrip(b"\n")
    files = {**form.beside, form.file + packing: packed(content, packing)}
    source = form.source + (packing if form.source == form.file else "")
    return Case(name, ("convert", form.reader, source, *form.options, *_strict(form.reader), "--out", "R"), files, odd=odd)


def _strict(reader: str) -> tuple[str, ...]:
    """Return the option by which a format that would drop a bad row, and read the others, refuses it."""
    return ("--max-lost", "0") if "max_lost" in READERS[reader].options else ()


def line_cases() -> Iterator[Case]:
    """Lines with too many fields or too few, and with other separators."""
    for name, form in FORMATS.items():
        whole = [*form.lines[form.head:]]
        head = "".join(f"{line}\n" for line in form.lines[: form.head])
        middle, sign = whole[len(whole) // 2], form.separator
        wrong = {"one-field": middle.split(sign)[0], "one-less": sign.join(middle.split(sign)[:-1]),
                 "semicolons": middle.replace(sign, ";"), "pipes": middle.replace(sign, "|"),
                 "quoted-line": f'"{middle}"', "comment": "# " + middle.split(sign)[0]}
        if sign == ",":
            wrong |= {"one-more": middle + sign + "1", "tabs": middle.replace(sign, "\t"), "empty": ",,,", "bare": "x"}
        elif name not in ("swf", "frontier"):
            wrong |= {"one-more": middle + sign + "1"}
        wrong = {what: line for what, line in wrong.items() if line != middle}
        for what, line in wrong.items():
            text = sign.join(middle.split(sign)[:17]) if name == "swf" and what == "one-less" else line
            case = f"trace/{name}/line/{what}"
            rows = [*whole]
            rows.insert(drawn(case).randrange(1, len(rows) + 1), text)
            yield _case(case, form, head + "".join(f"{row}\n" for row in rows))


def file_cases() -> Iterator[Case]:
    """Files that are no text, damaged archives, and what is not there at all."""
    for name, form in FORMATS.items():
        text = "".join(f"{line}\n" for line in form.lines).encode()
        for what, damage in NO_TEXT.items():
            case = f"trace/{name}/file/{what}"
            yield _case(case, form, damage(text, drawn(case)))
        for packing, damages in ((".gz", NO_GZIP), (".xz", NO_XZ)):
            for what, damage in damages.items():
                case = f"trace/{name}/file/{packing[1:]}-{what}"
                whole = packed(text * 20 if not form.head else text + text.split(b"\n", 1)[1] * 20, packing)
                yield _plain(case, form, packing, damage(whole, drawn(case)))
        yield _plain(f"trace/{name}/file/not-gz", form, ".gz", text)
        yield _plain(f"trace/{name}/file/not-xz", form, ".xz", text)
        yield _plain(f"trace/{name}/file/xz-called-gz", form, ".gz", packed(text, ".xz")[:30])
        yield _plain(f"trace/{name}/file/folder", form, "", None)
        unreadable = _plain(f"trace/{name}/file/unreadable", form, "", text)
        yield Case(unreadable.name, unreadable.arguments, unreadable.files, (form.file,))


def _plain(name: str, form: Format, packing: str, content: bytes | None) -> Case:
    source = form.source + (packing if form.source == form.file else "")
    return Case(name, ("convert", form.reader, source, *form.options, *_strict(form.reader), "--out", "R"), {**form.beside, form.file + packing: content})


def absent_cases() -> Iterator[Case]:
    """Sources that are not there, or are folders without what they must hold."""
    for reader in READERS:
        for what, files in {"absent": {}, "empty-folder": {"S": None}, "other-files": {"S/readme.txt": "hello\n"},
                            "hidden": {"S/.csv": "1\n"}, "folder-called-csv": {"S/batch_task.csv": None,
                            "S/openb_pod_list.csv": None, "S/task_events/part.csv": None}}.items():
            yield Case(f"source/{reader}/{what}", ("convert", reader, "S", "--out", "R"), files)
        yield Case(f"source/{reader}/unreadable-folder", ("convert", reader, "S", "--out", "R"),
                   {"S/task_events/a.csv": "1\n"}, ("S",))
        yield Case(f"source/{reader}/long-name", ("convert", reader, "S" * 300, "--out", "R"))
        yield Case(f"source/{reader}/below-a-file", ("convert", reader, "S/T", "--out", "R"), {"S": "1\n"})
    two = "".join(f"{line}\n" for line in POD_LINES)
    yield Case("source/openb/two-lists", ("convert", "openb", "S", "--out", "R"),
               {"S/openb_pod_list_a.csv": two, "S/openb_pod_list_b.csv": two})
    yield Case("source/openb/no-rows", ("convert", "openb", "S", "--out", "R"), {"S/openb_pod_list_a.csv": POD_HEAD + "\n"})
    yield Case("source/openb/no-header", ("convert", "openb", "S", "--out", "R"),
               {"S/openb_pod_list_a.csv": "\n".join(POD_LINES[1:])})
    for value in ("0", "-5", "99999999999", "2147483648"):
        yield _case(f"trace/swf/header/{value}", SWF, f"; MaxProcs: {value}\n" + "\n".join(SWF.lines))
    twice = "".join(f"{line}\n" for line in EVENTS)
    for what, files in {"empty-file": "", "no-fleet-at-start": "4000000,8,0,p,1,1\n", "only-removed": "0,8,1,p,1,1\n",
                        "no-capacity": "0,8,0,p,,\n", "after-the-window": f"{2**63 - 1},8,0,p,1,1\n"}.items():
        yield Case(f"trace/google-machines/{what}", ("convert", "google2011", "T", "--out", "R"),
                   {"T/task_events/a.csv": twice, "T/machine_events/a.csv": files})
    for what, files in {"after-the-window": f"{2**63 - 1},,1,0,7,1,u,1,2,0.1,0.2,0,0\n",
                        "only-submitted": EVENTS[0] + "\n", "too-late": f"{2**62},,1,0,7,1,u,1,2,0.1,0.2,0,0\n"}.items():
        yield Case(f"trace/google-events/{what}", ("convert", "google2011", "T", "--out", "R"), {"T/task_events/a.csv": files})


# Rumen: JSON


def _attempt(**changes: object) -> dict[str, object]:
    return {"attemptID": "a", "result": "SUCCESS", "hostName": "/r1/n1", "startTime": 2000, "finishTime": 9000,
            "shuffleFinished": -1, **changes}


def _job(attempt: object = None, **changes: object) -> dict[str, object]:
    task = {"taskID": "t", "attempts": [_attempt() if attempt is None else attempt]}
    return {"jobID": "job_1", "mapTasks": [task], "reduceTasks": [], "submitTime": 1000, "user": "u", "queue": "q",
            "priority": "NORMAL", "outcome": "SUCCESS", **changes}


NO_TIME = ("soon", -2, 1.5, 2**53 + 1, 2**60, 10**400, True, [1], {"a": 1}, -(2**63))
JOBS: dict[str, object] = {
    **{f"submit/{short(value)}": _job(submitTime=value) for value in NO_TIME},
    **{f"{name}/{short(value)}": _job(_attempt(**{name: value}))
       for name in ("startTime", "finishTime", "shuffleFinished") for value in NO_TIME},
    **{f"job/{short(value)}": _job(jobID=value) for value in (None, 7, [], "")},
    **{f"priority/{short(value)}": _job(priority=value) for value in ("high", 3, [], "LOWEST")},
    **{f"result/{short(value)}": _job(_attempt(result=value)) for value in ("DONE", 1, ["SUCCESS"])},
    **{f"host/{short(value)}": _job(_attempt(hostName=value)) for value in (7, ["n1"], {"name": "n1"})},
    **{f"user/{short(value)}": _job(user=value) for value in (7, ["u"])},
    **{f"queue/{short(value)}": _job(queue=value) for value in (7, ["q"], "a//b", "/a", "a/", "\u0001", "\n", "")},
    **{f"maps/{short(value)}": _job(mapTasks=value) for value in (7, "t", {"taskID": "t"}, [7], [[]], [{"attempts": 3}])},
    "no-maps": {key: value for key, value in _job().items() if key != "mapTasks"},
    "no-reduces": {key: value for key, value in _job().items() if key != "reduceTasks"},
    "no-id": {key: value for key, value in _job().items() if key != "jobID"},
    "no-tasks": _job(mapTasks=[]), "no-attempts": _job(mapTasks=[{"taskID": "t", "attempts": []}]),
    "no-submit": _job(submitTime=-1), "ends-before-it-starts": _job(_attempt(startTime=9000, finishTime=2000)),
    "unfinished": _job(_attempt(finishTime=-1)), "too-late": _job(submitTime=10**15 + 1), "number": 7, "text": "job",
    "list-of-numbers": [1, 2, 3], "list-of-lists": [[1]], "empty-object": {}, "empty-list": [], "null": None, "true": True,
}
NO_JSON = {
    "cut": json.dumps(_job())[:-20], "two-cut": json.dumps(_job()) + json.dumps(_job())[:50], "words": "{job: 1}",
    "quotes": "{'jobID': 'x'}", "comma": '{"jobID": "x",}', "comment": '{"jobID": "x"} // a job', "deep": "[" * 100_000,
    "closed": "]" * 10, "digits": '{"submitTime": ' + "9" * 5000 + "}", "escape": '{"jobID": "\\x"}',
    "surrogate": json.dumps(_job(jobID="\ud800")), "control": '{"jobID": "\x01"}', "nothing": "", "spaces": " \n\t ",
    "binary": b"\x80\x81\xff" * 40, "utf-16": json.dumps(_job()).encode("utf-16"), "csv": "1,2,3\n4,5,6\n",
    "nan": '{"submitTime": NaN, "jobID": "x", "mapTasks": [], "reduceTasks": []}',
    "infinity": '{"submitTime": Infinity, "jobID": "x", "mapTasks": [], "reduceTasks": []}',
}
TOPOLOGIES: dict[str, object] = {
    "no-name": {"children": []}, "empty": {}, "list": [], "number": 3, "text": "root", "null": None, "no-leaves":
    {"name": "root", "children": []}, "named-by-number": {"name": 3}, "children-of-text": {"name": "r", "children": ["a"]},
    "children-number": {"name": "r", "children": 5}, "nameless-leaf": {"name": "r", "children": [{"name": None}]},
}


def rumen_cases() -> Iterator[Case]:
    """JSON that is none, or says something else than a history; topologies likewise."""
    for what, job in JOBS.items():
        yield Case(f"trace/rumen/{what}", ("convert", "rumen", "x.json", "--out", "R"), {"x.json": json.dumps(job)})
    for what, text in NO_JSON.items():
        yield Case(f"trace/rumen/text/{what}", ("convert", "rumen", "x.json", "--out", "R"), {"x.json": text})
        yield Case(f"trace/rumen/topology-text/{what}", ("convert", "rumen", "x.json", "--topology", "t.json", "--out", "R"),
                   {"x.json": json.dumps(_job()), "t.json": text})
    for what, value in TOPOLOGIES.items():
        yield Case(f"trace/rumen/topology/{what}", ("convert", "rumen", "x.json", "--topology", "t.json", "--out", "R"),
                   {"x.json": json.dumps(_job()), "t.json": json.dumps(value)})
    for what, files in {"absent": {}, "folder": {"t.json": None}}.items():
        yield Case(f"trace/rumen/topology/{what}", ("convert", "rumen", "x.json", "--topology", "t.json", "--out", "R"),
                   {"x.json": json.dumps(_job()), **files})
    yield Case("trace/rumen/topology/unreadable", ("convert", "rumen", "x.json", "--topology", "t.json", "--out", "R"),
               {"x.json": json.dumps(_job()), "t.json": "{}"}, ("t.json",))


def _philly(**changes: object) -> dict[str, object]:
    attempt = {"start_time": "2017-10-07 01:12:09", "end_time": "2017-10-07 01:13:23", "detail": [{"ip": "m1", "gpus": ["gpu0"]}]}
    return {"jobid": "a", "status": "Pass", "vc": "v", "user": "u", "submitted_time": "2017-10-07 01:11:39", "attempts": [attempt],
            **changes}


PHILLY: dict[str, object] = {
    **{f"status/{short(value)}": [_philly(status=value)] for value in ("pass", "", 3, None, ["Pass"])},
    **{f"submit/{short(value)}": [_philly(submitted_time=value)] for value in ("soon", 5, "2017-10-07 25:00:00", None, "None")},
    **{f"attempts/{short(value)}": [_philly(attempts=value)] for value in (
        3, "x", [3], [{"start_time": "soon"}], [{"start_time": 5}], [{"detail": 3}], [{"detail": [{"gpus": "gpu0"}]}],
        [{"detail": [{"gpus": [0]}]}], [], None, [{"start_time": "2017-10-07 01:12:09"}])},
    **{f"job/{short(value)}": [_philly(jobid=value)] for value in (None, 7, [], "")},
    **{f"user/{short(value)}": [_philly(user=value)] for value in (7, ["u"], "\u0001")},
    "no-gpus": [_philly(attempts=[{"start_time": "2017-10-07 01:12:09", "end_time": "2017-10-07 01:13:23", "detail": []}])],
    "backwards": [_philly(attempts=[{"start_time": "2017-10-07 01:12:09", "end_time": "2017-10-06 01:13:23",
                                     "detail": [{"gpus": ["gpu0"]}]}])],
    "number": 7, "numbers": [1], "empty": [], "object": {}, "null": None,
}
MACHINE_LISTS = ("m1", "m1,x,24GB", "m1,-1,24GB\nm2,8,24GB", "m1,1.5,24GB\nm2,8,24GB", ",8,24GB\nm2,8,24GB", "",
                 "m1,99999999999,24GB\nm2,8,24GB", "m1,8\n")


def _pod(**changes: object) -> dict[str, object]:
    """A pod in order, with some of its fields, named by their paths, changed; `...` takes one away."""
    stamp = "2024-01-31T12:00:00Z"
    pod: dict = {"kind": "Pod", "metadata": {"name": "p", "namespace": "n", "creationTimestamp": stamp},
                 "spec": {"containers": [{"resources": {"requests": {"cpu": "500m", "memory": "4Gi"}}}], "priority": 3},
                 "status": {"phase": "Succeeded", "startTime": stamp,
                            "containerStatuses": [{"state": {"terminated": {"finishedAt": "2024-01-31T13:00:00Z"}}}]}}
    for path, value in changes.items():
        *parents, last = path.split("__")
        place = pod
        for name in parents:
            place = place.setdefault(name, {})
        if value is ...:
            place.pop(last, None)
        else:
            place[last] = value
    return pod


def _affinity(terms: object) -> dict[str, object]:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def _requests(**requests: object) -> list[object]:
    return [{"resources": {"requests": requests}}]


PODS: dict[str, object] = {
    **{f"cpu/{short(value)}": _pod(spec__containers=_requests(cpu=value)) for value in (
        "x", "-1", "1e400", "5q", "", "1 m", "0x10", "nan", "inf", True, None, ["1"], {"a": 1}, "9" * 400, "\u0663", 10**10, "1e9")},
    **{f"memory/{short(value)}": _pod(spec__containers=_requests(memory=value)) for value in ("x", "-1Gi", "4GiB", "1Ei", "gi")},
    **{f"created/{short(value)}": _pod(metadata__creationTimestamp=value) for value in ("soon", 5, "2024-13-01T00:00:00Z", ..., "")},
    **{f"started/{short(value)}": _pod(status__startTime=value) for value in ("soon", 5, "12:00:00", ...)},
    **{f"priority/{short(value)}": _pod(spec__priority=value) for value in ("high", 1.5, 2**31, -(2**40), [1])},
    **{f"selector/{short(value)}": _pod(spec__nodeSelector=value) for value in ("x", ["a"], {"a": 1}, 3, {"": "a"})},
    **{f"affinity/{number}": _pod(spec__affinity=_affinity(terms)) for number, terms in enumerate((
        "x", [3], [{"matchExpressions": [{"key": "a"}]}], [{"matchExpressions": [{"key": "a", "operator": "Is", "values": ["b"]}]}],
        [{"matchExpressions": [{"key": "a", "operator": "In"}]}], [{"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["x"]}]}],
        [{"matchExpressions": [{"key": "a", "operator": "Lt", "values": ["1", "2"]}]}],
        [{"matchExpressions": [{"key": "", "operator": "Exists"}]}]))},
    **{f"namespace/{short(value)}": _pod(metadata__namespace=value) for value in ("", "\u0001", 3)},
    **{f"containers/{short(value)}": _pod(spec__containers=value) for value in ("x", 3, [3], {"a": 1})},
    "no-name": _pod(metadata__name=...), "pending": _pod(status__phase="Pending", status__startTime=...), "no-status": _pod(status=...),
    "no-end": _pod(status__containerStatuses=[]), "number": 7, "list": [1], "no-kind": {}, "no-items": {"kind": "List", "items": []},
    "items-number": {"kind": "List", "items": 3}, "items": {"kind": "List", "items": [3]}, "null": None,
    "nodes-only": {"kind": "List", "items": [{"kind": "Node", "metadata": {"name": "n"}}]},
    "service": {"kind": "Service", "metadata": {"name": "s"}},
    **{f"node/{short(value)}": {"kind": "List", "items": [_pod(), {"kind": "Node", "metadata": {"name": "n"}, "status": {
        "allocatable": value}}]} for value in ({"cpu": "x"}, {"cpu": "-1"}, {"memory": "1Zi"}, 3, {"pods": "9999999999"})},
}


def _workflow(version: object = "1.5", run: object = None, **task: object) -> dict[str, object]:
    """A workflow of one task, with fields of the task or of its run changed."""
    ran = {"id": "a", "runtimeInSeconds": 1, **(run if isinstance(run, dict) else {})}
    return {"schemaVersion": version, "workflow": {"specification": {"tasks": [{"id": "a", "name": "a", **task}]},
                                                   "execution": {"tasks": [ran]}}}


WORKFLOWS: dict[str, object] = {
    **{f"version/{short(value)}": _workflow(value) for value in ("1.3", "1.7", "", 1.5, None, "v1.5")},
    **{f"id/{short(value)}": _workflow(id=value) for value in (None, "", 3, ["a"], "b")},
    **{f"{name}/{short(value)}": _workflow(**{name: value}) for name in ("parents", "children")
       for value in ("a", 3, [3], ["a"], ["b"], [None], {"a": 1})},
    **{f"{name}/{short(value)}": _workflow(run={name: value}) for name in ("runtimeInSeconds", "coreCount", "memoryInBytes")
       for value in ("1", -1, 1e300, 10**400, True, [1], float("nan"), float("inf"))},
    "no-run-time": _workflow(run={"runtimeInSeconds": None}), "no-workflow": {"schemaVersion": "1.5"}, "number": 7,
    "no-tasks": {"schemaVersion": "1.5", "workflow": {}}, "list": [1], "object": {}, "null": None,
    "tasks": {"schemaVersion": "1.4", "workflow": {"tasks": 3}}, "other-layout": {**_workflow(), "schemaVersion": "1.4"},
    "machine": {"schemaVersion": "1.4", "workflow": {"tasks": [{"name": "a", "runtimeInSeconds": 1}], "machines": [{}]}},
}
BORG_LINES = {
    "number": "7", "list": "[]", "null": "null", "type": '{"time": 0, "type": 11, "collection_id": 1, "instance_index": 0}',
    "time": '{"time": "soon"}', "nested": '{"time": 0, "type": 0, "collection_id": 1, "instance_index": 0, "resource_request": 3}',
    "relation": '{"time": 0, "type": 0, "collection_id": 1, "instance_index": 0, "constraint": [{"name": "a", "relation": 8}]}',
    "no-name": '{"time": 0, "type": 0, "collection_id": 1, "instance_index": 0, "constraint": [{"relation": 0}]}',
    "order": '{"time": 0, "type": 0, "collection_id": 1, "instance_index": 0, "constraint": [{"name": "a", "value": "x", "relation": 2}]}',
    "two-lines": '{"time":\n0}',
}


def json_cases() -> Iterator[Case]:
    """JSON of Philly, Kubernetes and Google 2019 that is none, or says something else."""
    for reader, listed in (("philly", PHILLY), ("pods", PODS), ("wfformat", WORKFLOWS)):
        call = ("convert", reader, "x.json", "--out", "R")
        for what, value in listed.items():
            yield Case(f"trace/{reader}/{what}", call, {"x.json": json.dumps(value)})
        for what, text in NO_JSON.items():
            yield Case(f"trace/{reader}/text/{what}", call, {"x.json": text})
    for what, text in (*NO_JSON.items(), *BORG_LINES.items()):
        yield Case(f"trace/google2019/json/{what}", ("convert", "google2019", "T", "--out", "R"), {"T/instance_events.json": text})
    for number, text in enumerate(MACHINE_LISTS):
        yield Case(f"trace/philly/machines/{number}", ("convert", "philly", "T", "--out", "R"), {
            "T/cluster_job_log": json.dumps([_philly()]), "T/cluster_machine_list": text})


def odd_cases() -> Iterator[Case]:
    """What may be in order: marks, line ends and letters that other programs leave."""
    for name, form in FORMATS.items():
        text = "".join(f"{line}\n" for line in form.lines)
        for what, content in {"plain": text, "crlf": text.replace("\n", "\r\n"), "bom": "\ufeff" + text,
                              "cr": text.replace("\n", "\r"), "doubled": text + "".join(
                                  f"{line}\n" for line in form.lines[form.head:]), "blank-line-last": text + "\n",
                              "blank-line-within": text.replace("\n", "\n\n", 1)}.items():
            yield _case(f"odd/trace/{name}/{what}", form, content, "", odd=True)


def trace_cases() -> list[Case]:
    """All of them."""
    return [*field_cases(), *line_cases(), *file_cases(), *absent_cases(), *rumen_cases(), *json_cases(), *odd_cases()]
