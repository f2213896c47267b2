#!/usr/bin/env python3
"""Verify a release of DPSyn without DPSyn: this one file, and Python 3.9 or later with its standard library.

    python verify_release.py RELEASE --key PUBLICKEY [--ledger ledger.db] [--json]

RELEASE is a release folder or a synopsis (.dpsyn). PUBLICKEY is the text dpsyn-ed25519:… of whoever answers for the
release, or a file with it. Get it, and this file, from a source that you trust: not from the release itself.

It checks every SHA-256, the Ed25519 signature (RFC 8032), that each released number is the answer to a recorded
measurement, what the measurements cost (sensitivities, noise, composition to ε and δ), the rows against their
description, and with a ledger that its entries agree. It shares no code with DPSyn: where both can go wrong, they go
wrong differently. Exit codes: 0 verified, 1 refused, 2 a mistake in the command, 3 consistent but not verified, because
no key was given: then nobody vouches for the release.

The cost is computed as follows. A Gaussian measurement with sensitivity Δ and standard deviation σ on the lattice 2^-s
costs ρ = Δ²/2σ² and is at least as private as a continuous one with μ² = Δ²/(σ² - 3/4^s); a pure one costs ε. All of
them together are at least as private as one Gaussian with μ² = Σμᵢ² and independent randomized responses with the pure
ε. With privacy losses ℓ of those, δ(ε) = E[δ_μ(ε - ℓ)], where δ_μ(ε) = ∫ φ(t)·(1 - e^(-μ(t-x))) dt over t > x and
x = ε/μ - μ/2. Partition selection adds its own δ.
"""

from __future__ import annotations

import argparse
import ast
import base64
import csv
import gzip
import hashlib
import json
import math
import os
import re
import sqlite3
import struct
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    Data = dict[str, Any]
    Point = tuple[int, int, int, int]
    Steps = Counter[Fraction]

KEY_PREFIX = "dpsyn-ed25519:"
DOMAIN = b"dpsyn release statement, version 1\n"
SYNOPSIS, SIGNATURES = "synopsis.dpsyn", "signatures.json"
MAX_JSON, MAX_ARRAYS = 100_000_000, 2_000_000_000  # bytes: larger files are not read
GRAINS = 10**36  # costs are whole numbers of 10^-36, rounded up


class Refused(Exception):
    """What was found is not what was expected."""


class Misuse(Exception):
    """The command cannot be carried out."""


def require(holds: Any, found: str, expected: object) -> None:
    if not holds:
        raise Refused(f"{found}; expected {expected}")


# ── Ed25519 verification, by RFC 8032, section 5.1 ───────────────────────────────────────────────────────────────

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)  # of -1
IDENTITY = (0, 1, 1, 0)  # X, Y, Z, T with x = X/Z, y = Y/Z, xy = T/Z


def point_add(a: Point, b: Point) -> Point:
    s, t = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    c, d = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, h = t - s, d - c, d + c, t + s
    return e * f % P, g * h % P, f * g % P, e * h % P


def point_multiply(number: int, point: Point) -> Point:
    result = IDENTITY
    while number:
        result = point_add(result, point) if number & 1 else result
        point, number = point_add(point, point), number >> 1
    return result


def point_decode(data: bytes) -> Point | None:
    """The point of 32 bytes; None if there is none, or if another encoding of it is the right one."""
    y, sign = int.from_bytes(data, "little") & (2**255 - 1), data[31] >> 7
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT % P
    if (x * x - square) % P or (x == 0 and sign):
        return None
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P


def point_encode(point: Point) -> bytes:
    inverse = pow(point[2], P - 2, P)
    x, y = point[0] * inverse % P, point[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


BASE = point_decode((4 * pow(5, P - 2, P) % P).to_bytes(32, "little")) or IDENTITY


def is_usable_key(key: bytes) -> bool:
    """Whether 32 bytes are a public key; points of small order are none, because they would verify many messages."""
    point = point_decode(key) if len(key) == 32 else None
    return point is not None and point_encode(point_multiply(8, point)) != point_encode(IDENTITY)


def ed25519_verifies(key: bytes, message: bytes, signature: bytes) -> bool:
    point, s = point_decode(key) if is_usable_key(key) else None, int.from_bytes(signature[32:], "little")
    if point is None or len(signature) != 64 or s >= ORDER:  # a larger s would be a second signature from the first
        return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % ORDER
    x, y, z, t = point
    difference = point_add(point_multiply(s, BASE), point_multiply(k, (P - x, y, z, P - t)))
    return point_encode(difference) == signature[:32]


def parse_key(text: str) -> bytes:
    encoded = text.strip()[len(KEY_PREFIX) :]
    try:
        raw = base64.urlsafe_b64decode(encoded + "=")
    except ValueError:
        raw = b""
    canonical = base64.urlsafe_b64encode(raw).decode().rstrip("=") == encoded
    if not text.strip().startswith(KEY_PREFIX) or not canonical or not is_usable_key(raw):
        raise Misuse(f"{text.strip()[:80]!r} is not a public key, which begins with {KEY_PREFIX}")
    return raw


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────


def load_json(content: str | bytes) -> Any:
    def build(pairs: list[tuple[str, Any]]) -> Data:
        built = dict(pairs)
        require(len(built) == len(pairs), "an object with the same key twice", "each key once")
        return built

    return json.loads(content, object_pairs_hook=build)


def compact(data: Any, *, sort_keys: bool = False, ensure_ascii: bool = False) -> bytes:
    text = json.dumps(data, separators=(",", ":"), sort_keys=sort_keys, ensure_ascii=ensure_ascii, allow_nan=False)
    return text.encode()


def canonical(data: Any) -> bytes:
    return compact(data, sort_keys=True, ensure_ascii=True)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def hash_file(path: str) -> tuple[str, int]:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
        return digest.hexdigest(), file.tell()


def read_small(path: str) -> bytes:
    require(os.path.getsize(path) <= MAX_JSON, f"{os.path.basename(path)} is too large", f"at most {MAX_JSON} bytes")
    with open(path, "rb") as file:
        return file.read()


def list_files(folder: str) -> Iterator[str]:
    """The files of a folder by their paths in it, except the signatures."""
    for parent, folders, names in os.walk(folder):
        for name in sorted(folders + names):
            path = os.path.join(parent, name)
            relative = os.path.relpath(path, folder).replace(os.sep, "/")
            require(not os.path.islink(path), f"{relative} is a link", "files only")
            if name in names and relative != SIGNATURES:
                require(os.path.isfile(path), f"{relative} is no file", "files only")
                yield relative


class Release:
    """A release on disk: its files, the manifest of its synopsis, its arrays and its certificates."""

    def __init__(self, path: str) -> None:
        self.path, self.is_folder = path, os.path.isdir(path)
        self.synopsis = os.path.join(path, SYNOPSIS) if self.is_folder else path
        self.signatures = os.path.join(path, SIGNATURES) if self.is_folder else f"{path}.{SIGNATURES}"
        if not (os.path.isfile(self.synopsis) or self.has(SIGNATURES) or self.has("certificate.json")):
            raise Misuse(f"{path} is neither a release folder nor a synopsis")
        self.arrays: dict[str, bytes] = {}
        self.manifest: Data = {}
        self.certificates: list[Any] = []
        self.manifest_sha256 = ""

    def file(self, name: str) -> str:
        return os.path.join(self.path, name)

    def has(self, name: str) -> bool:
        return self.is_folder and os.path.isfile(self.file(name))

    def json(self, name: str) -> Any:
        return load_json(read_small(self.file(name)))

    def open_synopsis(self) -> str:
        require(os.path.isfile(self.synopsis), f"no file {SYNOPSIS}", "the synopsis")
        with zipfile.ZipFile(self.synopsis) as archive:
            sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
            require(len(sizes) == len(archive.infolist()), "a member of the synopsis twice", "each once")
            require(sum(sizes.values()) <= MAX_ARRAYS, "arrays of more than 2 GB", "less")
            require(sizes.get("manifest.json", MAX_JSON + 1) <= MAX_JSON, "no readable manifest", "manifest.json")
            content = archive.read("manifest.json")
            self.manifest, self.manifest_sha256 = load_json(content), sha256(content)
            mark = self.manifest.get("kind"), self.manifest.get("format")
            require(mark == ("dpsyn synopsis", 2), f"a file of kind {mark}", "a DPSyn synopsis of format 2")
            members = self.manifest["members"]
            names = sorted(set(sizes) - {"manifest.json"})
            require(names == sorted(members), f"members {names[:9]} …", f"those of the manifest, {len(members)}")
            odd = [name for name in names if not re.fullmatch(r"([a-z0-9-]+/)*[a-z0-9-]+\.npy", name)]
            require(not odd, f"a member {odd[:1]}", "names of arrays")
            for name in names:
                data = archive.read(name)
                require(sha256(data) == members[name], f"{name} has SHA-256 {sha256(data)}", members[name])
                self.arrays[name] = data
        self.certificates = [release["certificate"] for release in self.manifest["releases"]]
        return f"the manifest and {len(self.arrays)} arrays have their SHA-256"

    def numbers(self, name: str, kind: str) -> tuple[list[int], bytes]:
        """The shape and the bytes of an array of 64-bit numbers, little-endian, in row order."""
        data = self.arrays[name]
        length = struct.unpack("<H", data[8:10])[0]
        header = ast.literal_eval(data[10 : 10 + length].decode("latin-1"))
        shape, content = header["shape"], data[10 + length :]
        well_formed = data[:8] == b"\x93NUMPY\x01\x00" and header["descr"] == kind and not header["fortran_order"]
        require(well_formed and len(content) == 8 * math.prod(shape), f"{name} is no array of {kind}", "one")
        return list(shape), content


# ── the signature ────────────────────────────────────────────────────────────────────────────────────────────────


def check_signature(release: Release, key: bytes | None) -> tuple[Data, str]:
    """The statement is signed by the reader's key, and every other signature in the file is what it claims."""
    require(os.path.isfile(release.signatures), "no signatures", os.path.basename(release.signatures))
    document = load_json(read_small(release.signatures))
    mark = document["kind"], document["format"], len(document)
    require(
        mark == ("dpsyn signatures", 1, 4) and type(mark[1]) is int, f"a file of kind {mark}", "signatures of format 1"
    )
    message = DOMAIN + canonical(document["statement"])
    signers = []
    for entry in document["signatures"]:
        try:
            signer = parse_key(entry["public_key"])
        except Misuse as error:
            raise Refused(f"{error}; expected public keys") from None
        signature = base64.b64decode(entry["signature"], validate=True)
        plain = len(entry) == 2 and base64.b64encode(signature).decode() == entry["signature"]
        require(plain, "a signature in another form", "a key and 64 bytes in Base64")
        require(ed25519_verifies(signer, message, signature), "a signature that does not verify", "valid ones")
        signers.append(signer)
    require(signers, "nobody signed", "a signature")
    require(len(set(signers)) == len(signers), "a key that signed twice", "each once")
    shown = ", ".join(map(fingerprint, signers))
    if key is not None:
        require(key in signers, f"signed by {shown}", f"a signature by {fingerprint(key)}")
    return document["statement"], f"signed by {shown}"


def fingerprint(key: bytes) -> str:
    digest = sha256(key)[:32]
    return "-".join(digest[i : i + 4] for i in range(0, 32, 4))


def check_statement(release: Release, statement: Data) -> str:
    """The statement is about this release: every file, the manifest, the certificates, the ledger entries."""
    if release.is_folder:
        files = {name: hash_file(release.file(name)) for name in list_files(release.path)}
    else:
        files = {SYNOPSIS: hash_file(release.path)}
    signed = {name: (entry["sha256"], entry["bytes"]) for name, entry in statement["files"].items()}
    for name in sorted(set(files) | set(signed)):
        require(name in signed, f"a file {name}", "only files that were signed")
        require(name in files, f"no file {name}", "all files that were signed")
        require(files[name] == signed[name], f"{name} has SHA-256 {files[name][0]}", signed[name][0])
    expected = {
        "kind": "dpsyn release",
        "format": 1,
        "manifest_sha256": release.manifest_sha256,
        "certificates_sha256": [each and sha256(canonical(each)) for each in release.certificates],
        "ledger_heads": [each and each["ledger_head"] for each in release.certificates],
    }
    for part in sorted({*expected, *statement} - {"files"}):
        require(statement.get(part) == expected.get(part), f"another {part} was signed", "that of this release")
    return f"{len(files)} files, the manifest, {len(release.certificates)} certificates and ledger entries are signed"


# ── what measurements cost ───────────────────────────────────────────────────────────────────────────────────────


def exact(value: Any) -> Fraction:
    if isinstance(value, float):
        value = repr(value)
    require(type(value) in (int, str) and len(str(value)) < 1000, "something else", "a number")
    require(not re.search(r"[eE][-+]?[0-9_]{4}", str(value)), f"{str(value)[:20]!r}", "a number")
    return Fraction(value)


def round_up(value: Fraction) -> Fraction:
    return Fraction(-(-value.numerator * GRAINS // value.denominator), GRAINS)


def pure_rho(steps: Steps) -> Fraction:
    return sum((times * round_up(step**2 / 2) for step, times in steps.items()), Fraction(0))


class Cost:
    """What some measurements cost together: ρ, μ² of the Gaussian ones, the pure ε with their numbers, and δ."""

    def __init__(self, rho: Any = 0, mu2: Any = 0, pure: Any = (), delta: Any = 0) -> None:
        self.rho, self.mu2, self.delta = Fraction(rho), Fraction(mu2), Fraction(delta)
        self.pure: Steps = Counter(pure)

    def __add__(self, other: Cost) -> Cost:
        rho, delta = self.rho + other.rho, self.delta + other.delta
        return Cost(rho, self.mu2 + other.mu2, self.pure + other.pure, delta)


def mechanism_cost(data: Data) -> Cost:
    kind = data["kind"]
    if kind == "gaussian":
        squared, sigma, lattice = exact(data["sensitivity_squared"]), Fraction(data["sigma"]), data["lattice"]
        require(type(lattice) is int and 0 <= lattice <= 1000, f"lattice {lattice!r}", "0 to 1000")
        require(squared > 0 and sigma * 2**lattice >= 1024, f"σ = {float(sigma)} on 2^-{lattice}", "a finer lattice")
        return Cost(round_up(squared / (2 * sigma**2)), round_up(squared / (sigma**2 - Fraction(3, 4**lattice))))
    if kind == "partition_selection":
        return partition_cost(data)
    sensitivity, scale = exact(data["sensitivity"]), Fraction(data["scale"])
    require(sensitivity > 0 and scale > 0, "noise without a scale", "a positive one")
    if kind == "laplace":
        charged = exact(data["charged_epsilon"]) if "charged_epsilon" in data else round_up(sensitivity / scale)
        steps = Counter({charged: 1})
        needed = sensitivity / scale
    else:
        require(kind == "exponential", f"a mechanism {kind!r}", "a known one")
        charged, selections = exact(data["charged_epsilon"]), data["selections"]
        require(type(selections) is int and 0 < selections <= 10**6, f"{selections!r} selections", "1 to a million")
        part = Fraction(charged * GRAINS // selections, GRAINS)
        more = int((charged - part * selections) * GRAINS)  # the first steps get a grain more, so that the sum is exact
        steps = Counter({part: selections - more}) + Counter({part + Fraction(1, GRAINS): more})
        needed = (1 if data["monotone"] is True else 2) * sensitivity / scale
    require(min(steps) >= needed, f"ε = {float(min(steps)):.9g} was charged", f"at least {float(needed):.9g}")
    return Cost(pure_rho(steps), pure=steps)


def partition_cost(data: Data) -> Cost:
    """Noise on the keys that occur; a key of one unit passes the threshold with probability at most δ."""
    noise, delta, rows, threshold = data["noise"], exact(data["delta"]), data["max_rows"], data["threshold"]
    require(type(rows) is type(threshold) is int and 0 < rows < threshold, f"threshold {threshold!r}", "a higher one")
    count = threshold - rows
    if noise["kind"] == "gaussian":
        step = 2.0 ** -noise["lattice"]  # the sum of a density over a lattice is below its integral from a step earlier
        tail = math.erfc((count - step) / noise["sigma"] / math.sqrt(2)) / 2
    else:
        require(noise["kind"] == "laplace", "other noise", "Gaussian or Laplace noise")
        tail = math.exp(-count / noise["scale"]) / (1 + math.exp(-1 / noise["scale"]))
    require(rows * tail <= delta, f"δ = {float(delta):.6g} was charged", f"at least {rows * tail:.6g}")
    return mechanism_cost(noise) + Cost(delta=delta)


def check_sensitivity(purpose: str, data: Data, unit: Data) -> None:
    """No measurement has a smaller sensitivity than what it counts: m scores change m times as much as one."""
    rows, changed = unit["max_rows"], {"add-remove": 1, "replace": 2}[unit["neighbors"]]
    require(type(rows) is int and rows >= 1, f"max_rows {rows!r}", "at least 1")
    if data["kind"] == "partition_selection":
        require(data["max_rows"] >= rows, f"{purpose}: for {data['max_rows']} rows of a unit", rows)
        data = data["noise"]
    scores = re.fullmatch(
        r"(?:distances of (\d+) marginals .*|dependence of (\d+) pairs|(\d+) Fourier coefficients)", purpose
    )
    many = int(next(filter(None, scores.groups()))) if scores else 1
    each = rows * changed * (4 if scores and scores[2] else 1)
    if data["kind"] == "gaussian":
        found, needed = exact(data["sensitivity_squared"]), many * each**2 if scores else rows**2 * changed
    else:
        found, needed = exact(data["sensitivity"]), many * each if data["kind"] == "laplace" else rows
        needed *= 2 if re.fullmatch(r"which of \d+ tables is nearest", purpose) else 1
        monotone = data["kind"] == "exponential" and data["monotone"] is not False
        require(not (monotone and changed == 2), f"{purpose}: monotone scores", "none if units are replaced")
    require(found >= needed, f"{purpose}: sensitivity {found}", f"at least {needed}")


def gaussian_delta(epsilon: float, mu: float) -> float:
    """δ of one Gaussian measurement, by Gauss-Legendre quadrature with 40 times 5 nodes."""
    x = epsilon / mu - mu / 2
    low, high = (0.0, math.sqrt(x * x + 90) - x) if x >= 0 else (max(0.0, -x - 9.5), 9.5 - x)
    a, b = math.sqrt(5 - 2 * math.sqrt(10 / 7)) / 3, math.sqrt(5 + 2 * math.sqrt(10 / 7)) / 3
    wa, wb = (322 + 13 * math.sqrt(70)) / 900, (322 - 13 * math.sqrt(70)) / 900
    half, total = (high - low) / 80, 0.0
    for i in range(40):
        center = low + (2 * i + 1) * half
        for node, weight in ((0, 128 / 225), (a, wa), (-a, wa), (b, wb), (-b, wb)):
            s = center + node * half
            total -= weight * math.exp(-((x + s) ** 2) / 2) * math.expm1(-mu * s)
    return total * half / math.sqrt(2 * math.pi)


def pure_losses(steps: Steps, grid: float) -> dict[float, float]:
    """The privacy losses of randomized responses with their probabilities; rounded up to a grid if they are many."""
    losses, numbers = {0.0: 1.0}, sum_up((float(step), times) for step, times in steps.items())
    for step, number in numbers.items():
        times, up, down = round(number), -math.log1p(math.exp(-step)), -math.log1p(math.exp(step))
        ways = [math.lgamma(times + 1) - math.lgamma(i + 1) - math.lgamma(times - i + 1) for i in range(times + 1)]
        atoms = [(step * (2 * i - times), math.exp(w + i * up + (times - i) * down)) for i, w in enumerate(ways)]
        losses = sum_up((loss + more, p * chance) for loss, p in losses.items() for more, chance in atoms)
        if len(losses) > 10_000:
            losses = sum_up((math.ceil(loss / grid) * grid, p) for loss, p in losses.items())
    return losses


def sum_up(pairs: Iterable[tuple[float, float]]) -> dict[float, float]:
    sums: dict[float, float] = {}
    for key, value in pairs:
        sums[key] = sums.get(key, 0.0) + value
    return sums


def total_delta(epsilon: float, cost: Cost) -> float:
    """δ(ε) of Gaussian and pure measurements together; losses that hardly occur count in full."""
    mu, total = math.sqrt(cost.mu2), 0.0
    for loss, probability in pure_losses(cost.pure, epsilon * 1e-6).items():
        if probability < 1e-45:
            total += probability
        elif mu:
            total += probability * gaussian_delta(epsilon - loss, mu)
        else:
            total += probability * max(0.0, -math.expm1(epsilon - loss))
    return total


def zcdp_epsilon(rho: float, delta: float) -> float:
    """The smallest ε at δ of anything that costs ρ (Canonne, Kamath and Steinke 2020), by two nested searches."""

    def log_delta(epsilon: float) -> float:
        def bound(log_a: float) -> float:
            a = math.exp(log_a)
            return a * ((a + 1) * rho - epsilon) - a * math.log1p(1 / a) - math.log1p(a)

        low, high = -30.0, 60.0
        for _ in range(100):
            third = (high - low) / 3
            low, high = (low, high - third) if bound(low + third) < bound(high - third) else (low + third, high)
        return bound((low + high) / 2)

    low, high = 0.0, rho + 2 * math.sqrt(rho * math.log(1 / delta)) + 1e-9
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if log_delta(middle) <= math.log(delta) else (middle, high)
    return high


def fits_pure(used: Steps, planned: list[Fraction]) -> bool:
    """Each used step is at most a planned one of its own; if one is planned, all may share it."""
    if len(planned) == 1:
        return sum(step * times for step, times in used.items()) <= planned[0]
    steps = sorted(used.elements(), reverse=True)
    return len(steps) <= len(planned) and all(u <= p for u, p in zip(steps, planned))


def check_cost(certificate: Data) -> str:
    """The cost of a certificate's measurements is within its budget, and the budget keeps the guarantee (ε, δ)."""
    require(certificate["format"] == 2, f"a certificate of format {certificate['format']}", "format 2")
    require(certificate["differentially_private"] is True, "noise that came from a test", "real noise")
    stated, unit, total = certificate["guarantee"], certificate["privacy_unit"], Cost()
    for record in certificate["measurements"]:
        check_sensitivity(record["purpose"], record["mechanism"], unit)
        cost = mechanism_cost(record["mechanism"])
        same = (exact(record["rho"]), exact(record["delta"])) == (cost.rho, cost.delta)
        require(same, f"{record['purpose']}: ρ = {record['rho']}", f"{float(cost.rho):.12g}")
        total = total + cost
    epsilon, delta, rho, threshold = (exact(stated[n]) for n in ("epsilon", "delta", "rho", "threshold_delta"))
    planned = sorted(map(exact, stated["pure_epsilons"]), reverse=True)
    require(epsilon > 0 <= delta and min([rho, threshold, *planned]) >= 0, "a negative budget", "a positive one")
    spent = total.rho - pure_rho(total.pure)
    require(spent <= rho, f"Gaussian noise spent ρ = {float(spent):.9g}", f"at most {float(rho):.9g}")
    require(total.delta <= threshold <= delta, f"thresholds spent δ = {float(total.delta):g}", f"{float(threshold):g}")
    require(fits_pure(total.pure, planned), "more pure ε was spent", "what was planned")
    require(keeps_guarantee(worst_case(stated), epsilon, delta), "a budget that exceeds (ε, δ)", "one that keeps them")
    certified = check_bounds(certificate, total, epsilon, delta)
    for name, kind in (("lost_answers", int), ("left_out", list), ("declared_public", list), ("recipe", dict)):
        require(isinstance(certificate[name], kind), f"another {name}", "as DPSyn writes it")
    number = len(certificate["measurements"])
    return f"{number} measurements cost ε = {certified:.7g} of {float(epsilon):g} at δ = {float(delta):g}"


def worst_case(budget: Data) -> Cost:
    """The most expensive run within a budget, with Gaussian noise on the coarsest allowed lattice."""
    rho, pure = exact(budget["rho"]), Counter(map(exact, budget["pure_epsilons"]))
    mu2 = round_up(2 * rho * (1 + Fraction(3, 1024**2 - 3)))
    return Cost(rho + pure_rho(pure), mu2, pure, exact(budget["threshold_delta"]))


def keeps_guarantee(cost: Cost, epsilon: Fraction, delta: Fraction) -> bool:
    left = float(delta - cost.delta)
    if not cost.mu2 and sum(step * times for step, times in cost.pure.items()) <= epsilon and left >= 0:
        return True
    if left > 0 and epsilon <= 50 and total_delta(float(epsilon), cost) <= left:
        return True
    return left > 0 and zcdp_epsilon(float(cost.rho), left) <= float(epsilon) * (1 + 1e-9)


def check_bounds(certificate: Data, total: Cost, epsilon: Fraction, delta: Fraction) -> float:
    """The ε that a certificate states are those of its measurements; the smallest one is certified."""
    bounds, left = certificate["epsilon_bounds"], float(delta - total.delta)
    zcdp, pld, basic = bounds["zcdp"], bounds["pld"], bounds["basic"]
    require(len(bounds) == 3, "other bounds", "zcdp, pld and basic")
    pure = sum(step * times for step, times in total.pure.items())
    if not total.mu2 and not total.pure:
        require((zcdp, pld, basic) == (0, 0, 0), "a cost without measurements", "none")
        return 0.0
    require((basic is None) == bool(total.mu2), f"basic ε = {basic}", "the sum of pure ε, if all are pure")
    require(basic is None or math.isclose(basic, pure, rel_tol=1e-9), f"basic ε = {basic}", float(pure))
    expected = zcdp_epsilon(float(total.rho), left) if left > 0 else None
    agrees = zcdp is None if expected is None else math.isclose(zcdp, expected, rel_tol=1e-6, abs_tol=1e-9)
    require(agrees, f"ε by zCDP = {zcdp}", expected)
    if pld is not None:
        require(left > 0 and pld > 0 and math.isfinite(pld), f"ε by loss distributions = {pld}", "one at this δ")
        enough = total_delta(pld * (1 + 1e-6), total) <= left
        require(enough, f"ε by loss distributions = {pld}, too small", f"δ({pld:.7g}) of at most {left:.6g}")
        lower = 0.95 * pld - 2e-4 * min(zcdp, float(epsilon))
        near = lower <= 0 or total_delta(lower, total) > left
        require(near, f"ε by loss distributions = {pld}, too large", f"below {lower:.7g}")
    certified = float(min(bound for bound in (zcdp, pld, basic) if bound is not None))
    stated = certificate["certified_epsilon"]
    require(math.isclose(stated, certified, rel_tol=1e-9), f"a certified ε = {stated}", certified)
    require(certified <= float(epsilon) * (1 + 1e-12), f"ε = {certified:.9g}", f"at most {float(epsilon):g}")
    return certified


# ── released numbers ─────────────────────────────────────────────────────────────────────────────────────────────


def check_numbers(release: Release, entry: Data) -> str:
    """Every released number is the answer to one recorded measurement, and means what the certificate hashed."""
    certificate = entry["certificate"]
    unused = list(certificate["measurements"])
    marginals = [marginal for each in entry["rounds"] for marginal in each["marginals"]]
    for marginal in marginals:
        name = ", ".join(marginal["clique"])
        answer = release.numbers(marginal["raw"], "<i8")
        take_record(unused, name, answer, marginal["lattice"], marginal["std"])
    for scores in entry["scores"]:
        shape, content = release.numbers(scores["values"], "<f8")
        values = struct.unpack(f"<{len(content) // 8}d", content)
        lattices = {lattice_of(r["mechanism"]) for r in unused if noise_std(r["mechanism"]) == scores["std"]}
        raws = [(lattice, [value * 2.0**lattice for value in values]) for lattice in sorted(lattices)]
        whole = [(lattice, raw) for lattice, raw in raws if all(v == int(v) and abs(v) < 2**62 for v in raw)]
        require(whole, f"scores of {scores['kind']}", "scores that the certificate records")
        lattice, raw = whole[0]
        answer = shape, struct.pack(f"<{len(raw)}q", *map(int, raw))
        mechanism = take_record(unused, "", answer, lattice, scores["std"])["mechanism"]
        check_score_sensitivity(scores, len(raw), mechanism, certificate["privacy_unit"])
    stated = certificate["contents_hash"]
    if stated and "attributes" in release.manifest:
        found = hash_contents(release, entry)
        require(found == stated, f"attributes, recodings and cliques with SHA-256 {found}", stated)
    number = len(marginals) + len(entry["scores"])
    require(number, "no released number", "at least one, which the rows follow from")
    return f"{number} released tables are answers to recorded measurements, each to another one"


def check_score_sensitivity(scores: Data, number: int, mechanism: Data, unit: Data) -> None:
    """The noise of scores is for as many as there are: a row changes each of them, those of dependence by 4."""
    each = unit["max_rows"] * {"add-remove": 1, "replace": 2}[unit["neighbors"]]
    each *= 4 if scores["kind"] == "dependence" else 1
    gaussian = mechanism["kind"] == "gaussian"
    found = exact(mechanism["sensitivity_squared" if gaussian else "sensitivity"])
    needed = number * each**2 if gaussian else number * each
    require(number == len(scores["cliques"]), f"{number} scores of {len(scores['cliques'])} cliques", "one each")
    require(found >= needed, f"{number} scores of {scores['kind']}: sensitivity {found}", f"at least {needed}")


def check_provenance(release: Release) -> str:
    """Every certificate names the public table that was a prior, and the earlier releases that it extends are here."""
    runs: list[str] = []
    for number, entry in enumerate(release.manifest["releases"], start=1):
        certificate = entry["certificate"]
        if certificate is not None:
            recipe, facts = certificate["recipe"], certificate["declared_public"]
            extended = recipe.get("extends", [])
            require(extended == runs, f"release {number} extends {extended}", f"the releases before it, {runs}")
            digest = recipe.get("public", {}).get("digest")
            stated = digest is not None and any(f"SHA-256 {digest}" in fact for fact in facts)
            used = entry.get("public") is not None
            require(stated or not used, f"public rows were a prior of release {number}", "a certificate that says so")
        runs.append(certificate["run"] if certificate is not None else "imported")
    return f"public rows are declared, and nothing that was extended is missing in {len(runs)} releases"


def take_record(unused: list[Data], name: str, answer: tuple[list[int], bytes], lattice: int, std: float) -> Data:
    shape, content = answer
    digest = sha256(json.dumps(shape).encode() + b"\n" + content)
    for position, record in enumerate(unused):
        same_noise = (lattice_of(record["mechanism"]), noise_std(record["mechanism"])) == (lattice, std)
        if record["answer_hash"] == digest and same_noise and name in record["purpose"]:
            del unused[position]
            return record
    raise Refused(f"a table of {name or 'scores'} that no measurement records; expected an answer that was charged")


def lattice_of(mechanism: Data) -> Any:
    return mechanism.get("lattice", 0)


def noise_std(mechanism: Data) -> Any:
    if mechanism["kind"] == "gaussian":
        return mechanism["sigma"]
    if mechanism["kind"] != "laplace":
        return None
    q = 1 / mechanism["scale"]
    return max(math.sqrt(2 * math.exp(-q)) / -math.expm1(-q), 1e-6)


def hash_contents(release: Release, entry: Data) -> str:
    """The SHA-256 of what gives the numbers their meaning."""
    digest = hashlib.sha256(json.dumps(release.manifest["attributes"]).encode())
    for each in entry["rounds"]:
        recoding = hash_recoding(release, release.manifest["recodings"][each["recoding"]])
        digest.update(compact([recoding, [marginal["clique"] for marginal in each["marginals"]]]))
    for scores in entry["scores"]:
        digest.update(compact([scores["kind"], scores["cliques"]]))
    return digest.hexdigest()


def hash_recoding(release: Release, recoding: Data) -> str:
    digest = hashlib.sha256(compact(recoding["origin"]))
    for column in recoding["columns"]:
        tables = []
        for source, name in zip(column["sources"], column["tables"]):
            size = recoding["origin"][source][1]
            identity = name is None and struct.pack(f"<{size}q", *range(size))
            tables.append(sha256(identity or release.numbers(name, "<i8")[1]))
        merged = column["merged"] is not None and sha256(release.numbers(column["merged"], "<i8")[1])
        differences = [
            each and [each["anchor"], each["modulus"], sha256(release.numbers(each["expected"], "<i8")[1])]
            for each in column.get("differences", [])
        ]
        digest.update(compact([column["name"], column["sources"], tables, merged, differences]))
    return digest.hexdigest()


# ── the other files of the folder ────────────────────────────────────────────────────────────────────────────────


def check_certificate_files(release: Release) -> str:
    stated = release.json("certificate.json")
    releases = [{"source": e["source"], "certificate": e["certificate"]} for e in release.manifest["releases"]]
    require(stated["releases"] == releases, "other certificates in certificate.json", "those of the synopsis")
    require(stated["differentially_private"] is True, "a release that is not private", "one that is")
    if not release.has("certificate.txt"):
        return "certificate.json holds the certificates of the synopsis"
    text = read_small(release.file("certificate.txt")).decode()
    lines = re.findall(r"^Guarantee: ε = (\S+), δ = (\S+)\.$", text, re.MULTILINE)
    guarantees = [(float(g["epsilon"]), float(g["delta"])) for g in (c["guarantee"] for c in release.certificates)]
    require(len(lines) == len(guarantees), f"{len(lines)} guarantees in certificate.txt", len(guarantees))
    for (epsilon, delta), (e, d) in zip(lines, guarantees):
        same = float(epsilon) == float(f"{e:g}") and d * (1 - 1e-12) <= float(delta) <= 1.02 * d
        require(same, f"certificate.txt: ε = {epsilon}, δ = {delta}", f"ε = {e:g}, δ = {d:g}")
    return "certificate.json and certificate.txt state the guarantees of the synopsis"


def check_rows(release: Release) -> str:
    for _ in list_files(release.path):  # refuses links, which lead out of the folder
        pass
    resource = release.json("datapackage.json")["resources"][0]
    paths = resource["path"] if isinstance(resource["path"], list) else [resource["path"]]
    hashes = resource.get("hashes") or [resource["hash"]]
    require(len(paths) == len(hashes), f"{len(hashes)} hashes of {len(paths)} files", "one each")
    size = 0
    for path, expected in zip(paths, hashes):
        inside = not os.path.isabs(path) and ".." not in path.split("/")
        require(inside and release.has(path), f"no file {path!r} in the folder", "the table")
        digest, length = hash_file(release.file(path))
        require(f"sha256:{digest}" == expected, f"{path} has SHA-256 {digest}", expected)
        size += length
    require(size == resource["bytes"], f"{size} bytes", resource["bytes"])
    names = [field["name"] for field in resource["schema"]["fields"]]
    if resource["format"] == "csv":
        reader = gzip.open if paths[0].endswith(".gz") else open
        with reader(release.file(paths[0]), "rt", encoding="utf-8", newline="") as file:
            header = next(csv.reader(file), [])
        same = len(header) == len(names) and all(h in (n, f"'{n}") for h, n in zip(header, names))
        require(same, f"columns {header[:9]}", names[:9])
    return f"{', '.join(paths[:3])}: {size} bytes and {len(names)} columns as described"


def check_cards(release: Release) -> str:
    """Descriptions for registries and catalogs state the guarantee and the files of this release."""
    checked = []
    guarantees = [tuple(exact(each["guarantee"][n]) for n in ("epsilon", "delta")) for each in release.certificates]
    if release.has("choice.json"):  # what all candidates and the choice cost, which is checked there
        guarantees = [tuple(exact(release.json("choice.json")[n]) for n in ("epsilon", "delta"))]
    if release.has("deployment-card.json"):
        stated = release.json("deployment-card.json")["deployment"]["privacy_loss"]["privacy_parameters"]
        for name, numbers in zip(("epsilon", "delta"), zip(*guarantees)):
            total, found = sum(numbers), stated.get(name, 0)
            require(math.isclose(float(found), total, rel_tol=1e-9), f"{name} = {found} in the card", float(total))
        checked.append("deployment-card.json")
    if release.has("croissant.json"):
        croissant = release.json("croissant.json")
        pairs = re.findall(
            r"\(([^(),]+), ([^(),]+)\)", croissant["rai:personalSensitiveInformation"].replace("(ε, δ)", "")
        )
        same = len(pairs) == len(guarantees) and all(
            math.isclose(float(shown), number, rel_tol=1e-5)
            for pair, numbers in zip(pairs, guarantees)
            for shown, number in zip(pair, numbers)
        )
        require(same, f"(ε, δ) = {pairs} in croissant.json", [tuple(map(float, each)) for each in guarantees])
        for each in croissant["distribution"]:
            if "sha256" in each:
                path = each["contentUrl"]
                inside = not os.path.isabs(path) and ".." not in path.split("/") and release.has(path)
                found = hash_file(release.file(path))[0] if inside else "missing"
                require(found == each["sha256"], f"{path} is {found}", each["sha256"])
        checked.append("croissant.json")
    return f"{' and '.join(checked)} agree" if checked else "there are none"


def check_choice(release: Release, entries: Any) -> str:
    """The release was chosen among candidates as stated, and the stated cost is that of all of them and the choice."""
    data = release.json("choice.json")
    named, choice, chosen = data["candidates"], data["choice"], data["chosen"]
    require((data["format"], len(data)) == (1, 6), "another choice.json", "one of format 1")
    require(named.get(chosen) == release.certificates[-1], f"another certificate of {chosen!r}", "that of the release")
    certificates = [*named.values(), choice]
    for each in certificates:
        check_cost(each)
        if entries:
            check_ledger(each, entries)
    owners = {canonical([each["dataset"], each["privacy_unit"]]) for each in certificates}
    require(len(owners) == 1, "candidates of different datasets", "those of one dataset")
    require(len({each["run"] for each in certificates}) == len(certificates), "a run that counts twice", "each once")
    if entries:
        check_one_choice(choice["run"], {each["run"] for each in named.values()}, entries)
    recipe, (record,) = choice["recipe"], choice["measurements"]
    listed = [(each["name"], each["run"]) for each in recipe["candidates"]]
    same = recipe["name"] == "choice" and listed == [(name, each["run"]) for name, each in named.items()]
    require(same, "a choice among other candidates", "among those that are listed")
    digest = sha256(json.dumps(recipe, sort_keys=True).encode())
    require(choice["contents_hash"] == digest, "another list of candidates was bound", digest)
    asked = record["purpose"] == f"which of {len(named)} tables is nearest"
    require(asked and record["mechanism"]["kind"] == "exponential", f"a choice by {record['purpose']!r}", "by distance")
    answer = sha256(b"[1]\n" + struct.pack("<q", list(named).index(chosen)))
    require(record["answer_hash"] == answer, f"the choice was not {chosen!r}", "the answer that was charged")
    budgets = [each["guarantee"] for each in certificates]
    epsilon, delta = (sum((exact(budget[n]) for budget in budgets), Fraction(0)) for n in ("epsilon", "delta"))
    worst = sum(map(worst_case, budgets), Cost())
    most, stated = float(epsilon), data["epsilon"]
    keeps = math.isclose(stated, most) or keeps_guarantee(worst, Fraction(stated * (1 + 1e-6)), delta)
    require(keeps and stated <= most * (1 + 1e-9), f"ε = {stated} of all of it", f"what keeps δ, at most {most:.7g}")
    require(math.isclose(data["delta"], delta, rel_tol=1e-9), f"δ = {data['delta']} of all of it", float(delta))
    text = read_small(release.file("choice.txt")).decode()
    lines = re.findall(r"^Guarantee of all of it: ε = (\S+), δ = (\S+), against", text, re.MULTILINE)
    pairs = zip(lines[0], (stated, data["delta"])) if len(lines) == 1 else [("0", 1.0)]
    same = all(number * (1 - 1e-9) <= float(shown) <= number * (1 + 2e-5) for shown, number in pairs)
    same = same and text.startswith(f"Chosen: {chosen}, among {', '.join(named)}.\n")
    require(same, "another choice.txt", "the choice and the guarantee of all of it")
    return f"{chosen} of {len(named)} candidates; all of it costs ε = {stated:.7g}, δ = {float(delta):g}"


# ── the ledger ───────────────────────────────────────────────────────────────────────────────────────────────────


def read_ledger(path: str) -> list[Any]:
    """The entries of a ledger, whose chain of hashes must be intact."""
    if not os.path.isfile(path):
        raise Misuse(f"there is no ledger {path}")
    columns = "sequence, time, dataset, run, kind, payload, previous, hash"
    connection = sqlite3.connect(f"file:{quote(os.path.abspath(path))}?mode=ro", uri=True)
    try:
        rows = connection.execute(f"SELECT {columns} FROM entries ORDER BY sequence").fetchall()
    finally:
        connection.close()
    previous = "0" * 64
    for position, row in enumerate(rows, start=1):
        intact = row[0] == position and row[6] == previous and row[7] == sha256(json.dumps(list(row[:7])).encode())
        require(intact, f"entry {position} was changed, or one is missing", "an intact chain of hashes")
        previous = row[7]
    require(rows, "an empty ledger", "entries")
    return rows


def check_ledger(certificate: Data, rows: list[Any]) -> str:
    head, run = certificate["ledger_head"], certificate["run"]
    require(head is not None, "a release that kept no ledger", "one that is recorded")
    own = [(row[4], load_json(row[5]), {"sequence": row[0], "hash": row[7]}, row[2]) for row in rows if row[3] == run]
    require(own and own[0][0] == "open", f"no run {run} in the ledger", "the run of the release")
    last = max((i for i, entry in enumerate(own) if entry[0] == "measurement"), default=0)
    found = head in [entry[2] for entry in own[last:]]
    require(found, f"entry {head['sequence']} is not the end of this run in the ledger", "the entry that is certified")
    opened = own[0][1]
    recorded = {
        "dataset": own[0][3],
        "guarantee": opened["budget"],
        **{n: opened[n] for n in ("privacy_unit", "differentially_private", "recipe", "declared_public")},
        "measurements": [{k: v for k, v in e[1].items() if k != "journal_key"} for e in own if e[0] == "measurement"],
    }
    for closing in (entry[1] for entry in own if entry[0] == "close"):
        recorded.update({name: closing[name] for name in ("lost_answers", "left_out", "contents_hash")})
    for name, value in recorded.items():
        require(certificate[name] == value, f"another {name} in the certificate", "what the ledger recorded")
    return f"{len(rows)} entries are intact, and run {run} is recorded as certified, up to entry {head['sequence']}"


def list_choices(rows: list[Any]) -> Iterator[tuple[str, list[str], str]]:
    """The choices that a ledger recorded: the run, the runs of the candidates, and the hash of the answer."""
    opened = {row[3]: load_json(row[5])["recipe"] for row in rows if row[4] == "open"}
    for row in rows:
        recipe = opened.get(row[3], {})
        if row[4] == "measurement" and recipe.get("name") == "choice":
            yield row[3], [each["run"] for each in recipe["candidates"]], load_json(row[5])["answer_hash"]


def check_one_choice(choice: str, candidates: set[str], rows: list[Any]) -> None:
    for run, listed, _ in list_choices(rows):
        same = run != choice and candidates.intersection(listed)
        require(not same, f"another choice among these candidates, run {run}", "one choice")


def check_not_chosen(certificate: Data, rows: list[Any]) -> str:
    """The ledger knows no choice of this release, whose cost the release would have to state."""
    for run, listed, answer in list_choices(rows):
        for position, candidate in enumerate(listed):
            chosen = candidate == certificate["run"] and answer == sha256(b"[1]\n" + struct.pack("<q", position))
            require(not chosen, f"it was chosen among {len(listed)}, by run {run}", "choice.json")
    return "the ledger records no choice of it"


# ── the command ──────────────────────────────────────────────────────────────────────────────────────────────────


def verify(path: str, key: bytes | None = None, ledger: str | None = None) -> list[tuple[str, bool, str]]:
    """All checks of a release: what, whether it holds, what was found. The key is 32 bytes, or None."""
    release = Release(path)
    results: list[tuple[str, bool, str]] = []

    def run(what: str, check: Callable[..., Any], *arguments: Any) -> Any:
        """Make a check; whatever goes wrong in it is a reason to refuse."""
        found, result = "", None
        try:
            result = check(*arguments)
            found = result[1] if isinstance(result, tuple) else result
        except Misuse:
            raise
        except Exception as error:  # a forged file may break anything
            plain = f"not as DPSyn writes it ({type(error).__name__}: {str(error)[:100]})"
            found = str(error) if isinstance(error, Refused) else plain
        results.append((what, result is not None, found))
        return result

    opened = run("synopsis", release.open_synopsis)
    if key is not None or os.path.isfile(release.signatures):
        signed = run("signature", check_signature, release, key)
        if signed and opened:
            run("signed content", check_statement, release, signed[0])
    if opened:
        entries = ledger and run("ledger", lambda: (read_ledger(ledger), f"{ledger} is an intact chain"))
        for number, entry in enumerate(release.manifest["releases"], start=1):
            if entry["certificate"] is None:
                results.append((f"release {number}", False, "imported numbers; expected a certificate"))
                continue
            run(f"release {number}, cost", check_cost, entry["certificate"])
            run(f"release {number}, numbers", check_numbers, release, entry)
            if entries:
                run(f"release {number}, ledger", check_ledger, entry["certificate"], entries[0])
        run("provenance", check_provenance, release)
        if not release.manifest["releases"]:
            results.append(("releases", False, "none; expected at least one"))
        if release.is_folder:
            run("certificate files", check_certificate_files, release)
            run("rows", check_rows, release)
            run("cards", check_cards, release)
            if release.has("choice.json") or release.has("choice.txt"):
                run("choice", check_choice, release, entries and entries[0])
        if entries and release.certificates and release.certificates[-1] and not release.has("choice.json"):
            run("not chosen", check_not_chosen, release.certificates[-1], entries[0])
    return results


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Verify a release of DPSyn without DPSyn.")
    parser.add_argument("release", help="a release folder, or a synopsis")
    parser.add_argument("--key", help=f"the public key {KEY_PREFIX}…, or a file with it; from a source that you trust")
    parser.add_argument("--ledger", help="the ledger of the data owner")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    try:
        key = options.key
        if key is not None:
            if not key.startswith(KEY_PREFIX) and os.path.isfile(key):
                inside = os.path.join(os.path.realpath(options.release), "")
                if os.path.realpath(key).startswith(inside):
                    raise Misuse(f"{key} lies in the release itself, so it proves nothing; get the key elsewhere")
                with open(key, encoding="utf-8") as file:
                    key = file.read(1000)
            key = parse_key(key)
        results = verify(options.release, key, options.ledger)
    except (Misuse, OSError, ValueError, sqlite3.Error) as error:
        print(f"verify_release: {error}", file=sys.stderr)
        return 2
    refused = not all(holds for _, holds, _ in results)
    verdict = "refused" if refused else "verified" if key else "unsigned"
    if options.json:
        checks = [{"check": what, "passed": holds, "found": text} for what, holds, text in results]
        print(json.dumps({"verdict": verdict, "checks": checks}, indent=2))
    else:
        for what, holds, text in results:
            print(f"{'ok     ' if holds else 'REFUSED'} {what}: {text}")
        print(VERDICTS[verdict])
    return {"verified": 0, "refused": 1, "unsigned": 3}[verdict]


VERDICTS = {
    "verified": "VERIFIED: whoever has this key vouches for the release, and its cost is as certified.",
    "refused": "REFUSED: do not rely on this release.",
    "unsigned": "NOT VERIFIED: it is consistent, but nobody vouches for it, and anyone can make one. Give --key.",
}


if __name__ == "__main__":
    sys.exit(main())
