"""CEL: what selectors of devices mean. Every answer was checked against cel-go as kube-scheduler v1.36.1 runs it."""

from __future__ import annotations

import pytest

from extender.api.device import ResourceSlice
from extender.api.views import view
from extender.core.dra.cel import CelError, compiled
from extender.core.dra.pools import Offer

DEVICE = {
    "name": "d0",
    "attributes": {
        "model": {"string": "H100-SXM"}, "numa": {"int": 1}, "ok": {"bool": True}, "fw.test/version": {"version": "1.2.0-rc.1"},
    },
    "capacity": {"memory": {"value": "80Gi"}, "net.test/slots": {"value": "7"}},
}  # fmt: skip
GPU, MEMORY = 'device.attributes["gpu.test"]', 'device.capacity["gpu.test"].memory'


@pytest.fixture(scope="module")
def offer() -> Offer:
    spec = {"driver": "gpu.test", "pool": {"name": "p"}, "devices": [DEVICE]}
    read = view(ResourceSlice, {"metadata": {"name": "s"}, "spec": spec})
    assert read.spec.devices
    return Offer(read, read.spec.devices[0])


TRUE = {
    "the driver": 'device.driver == "gpu.test"',
    "an attribute of the driver": f'{GPU}.model == "H100-SXM"',
    "an attribute of another domain": 'device.attributes["fw.test"].version.minor() == 2',
    "a flag by itself": f"{GPU}.ok",
    "numbers": f"{GPU}.numa + 2 * 3 == 7 && -7 / 2 == -3 && -7 % 2 == -1 && 1 == 1.0 && 2u > 1",
    "a quantity at least": f'{MEMORY}.compareTo(quantity("40Gi")) >= 0',
    "quantities are equal by value": f'{MEMORY} == quantity("81920Mi") && quantity("1Ki").asInteger() == 1024',
    "quantities add up": f'{MEMORY}.sub(quantity("40Gi")).add(1).isGreaterThan(quantity("40Gi"))',
    "a pre-release is earlier": 'device.attributes["fw.test"].version.isLessThan(semver("1.2.0"))',
    "a loose version": 'semver("v1.2", true) == semver("1.2.0") && !isSemver("v1.2")',
    "membership": f'{GPU}.model in ["A100", "H100-SXM"] && "numa" in {GPU}',
    "a domain that there is not is empty": '!("x" in device.attributes["none.test"]) && !has(device.attributes["none.test"].x)',
    "one side decides where the other has no answer": f"{GPU}.nothing == 1 || true",
    "an absent one with a value instead": f'{GPU}.?nothing.orValue("x") == "x" && {GPU}[?"numa"].orValue(9) == 1',
    "strings": f'{GPU}.model.startsWith("H") && {GPU}.model.lowerAscii().split("-")[1] == "sxm"',
    "a regular expression is searched": f'{GPU}.model.matches("[0-9]+-S")',
    "a regular expression finds": '"a12b3".find("[0-9]+") == "12" && "ab".find("[0-9]+") == "" && "αβ".find("\\\\pL+$") == "αβ"',
    "a regular expression never runs away": f'!"{"a" * 200}b".matches("^(a|aa)+$")',
    "loops": "[1, 2, 3].filter(x, x > 1).map(x, x * 2) == [4, 6] && [1, 2].exists(x, x == 2) && ![1, 2].all(x, x == 2)",
    "a short name for a domain": f'cel.bind(gpu, {GPU}, gpu.ok && gpu.numa == 1)',
    "a choice": f'{GPU}.numa > 0 ? !false : {GPU}.nothing',
    "sets": "sets.contains([1, 2, 3], [2]) && sets.intersects([1], [1, 2]) && sets.equivalent([1, 1], [1])",
    "a flag is no number": "dyn(true) != dyn(1)",
    "a flag as text is what Go takes for one": 'bool("T") && bool("1") && !bool("F") && !bool("FALSE")',
    "a thousand terms": " && ".join(["true"] * 1000),
}  # fmt: skip


@pytest.mark.parametrize("expression", TRUE.values(), ids=TRUE)
def test_true(offer: Offer, expression: str) -> None:
    """What holds of the device."""
    assert compiled(expression).matches(offer.variables)


NO_ANSWER = {
    "an attribute that there is not": (f"{GPU}.nothing", "no such key: nothing"),
    "of a domain that there is not": ('device.attributes["none.test"].healthy', "no such key: healthy"),
    "both sides": (f"{GPU}.nothing || {GPU}.ok && {GPU}.nothing", "no such key"),
    "neither true nor false": (f"{GPU}.numa", "must be true or false, not of type int"),
    "other types": (f"{GPU}.model > 3", "> is not defined for string, int"),
    "no quantity": ('quantity("many").isInteger()', "not a quantity"),
    "a regular expression that Go has not": ('"a".matches("(?=a)")', "is not a regular expression of RE2"),
    "a division by zero": ("1 / 0 == 1", "division by zero"),
    "beyond 64 bits": ("9223372036854775807 + 1 > 0", "integer overflow"),
    "a field that there is not": ("device.memory", "compile error: device has no field 'memory'"),
    "a variable that there is not": ("gpu.ok", "compile error: there is no variable 'gpu'"),
    "a function that there is not": ("nothing(1)", "compile error: there is no function 'nothing'"),
    "too many values": ("size([1], 2) == 1", "compile error: size does not take 2 values"),
    "half an expression": ("true &&", "compile error: expected a value"),
    "not an expression": ("true # yes", "compile error: cannot read"),
    "far too deep": ("(" * 500 + "true" + ")" * 500, "compile error: nests too deep"),
}


@pytest.mark.parametrize(("expression", "message"), NO_ANSWER.values(), ids=NO_ANSWER)
def test_no_answer(offer: Offer, expression: str, message: str) -> None:
    """An expression without an answer says why."""
    with pytest.raises(CelError, match=message.replace("(", r"\(")):
        compiled(expression).matches(offer.variables)
