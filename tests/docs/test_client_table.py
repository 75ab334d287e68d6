"""The page about clients says what runs have seen, and a run that sees something else fails."""

from __future__ import annotations

from pathlib import Path

from tools.client_table import PAGE, Claim, Client, Report, claims_of, faults_of, merge, page, read_table

ONE, OTHER = "tests/compat/test_one.py", "tests/compat/test_other.py"
JAVA, KCAT = Client("java", "4.3"), Client("kcat", "1.7")
RUN: Report = {ONE: [(*JAVA, True), (*KCAT, False), (*JAVA, False)], OTHER: [(*KCAT, True)]}
CLAIMED = {Claim(JAVA, ONE, True), Claim(KCAT, ONE, False), Claim(KCAT, OTHER, True)}
ROOT = Path(__file__).parents[2]


def test_the_table_is_written_and_read_back() -> None:
    """What a run has shown stands there, and nothing else."""
    assert claims_of(RUN) == CLAIMED
    assert read_table(page("above\n", CLAIMED)) == CLAIMED
    text = PAGE.read_text("utf-8")
    assert page(text, read_table(text)) == text


def test_every_file_in_the_table_exists() -> None:
    """A file that was renamed takes its clients with it."""
    claims = read_table(PAGE.read_text("utf-8"))
    assert {"aiokafka", "apache-kafka-java", "confluent-kafka-python", "kafka-python", "librdkafka"} == {
        claim.client.name for claim in claims
    }
    assert [claim.file for claim in claims if not (ROOT / claim.file).exists()] == []


def test_a_run_that_sees_something_else_is_a_fault() -> None:
    """Another version, a client that stayed away, one broker instead of two."""
    assert faults_of(CLAIMED, RUN) == []
    newer: Report = {OTHER: [("kcat", "1.8", True)]}
    assert faults_of(CLAIMED, newer) == [
        "kcat 1.8 was tested and is not in the table",
        f"kcat 1.7 was not seen in {OTHER}",
    ]
    assert faults_of(CLAIMED, {ONE: [(*JAVA, True)]}) == [f"kcat 1.7 was not seen in {ONE}"]
    assert faults_of(CLAIMED, {OTHER: [(*KCAT, False)]}) == [f"kcat 1.7 was not seen in {OTHER}"]


def test_a_version_that_the_distribution_chooses_is_no_fault() -> None:
    """Whoever runs the tests has the kcat of his system."""
    claimed = {Claim(Client("librdkafka", "2.0.2"), ONE, True)}
    assert faults_of(claimed, {ONE: [("librdkafka", "2.3.0", True)]}) == []
    assert faults_of(claimed, {ONE: [(*JAVA, True)]}) != []


def test_a_run_of_a_part_speaks_for_that_part_alone() -> None:
    """Nothing is wrong with, and nothing changes in, what was not run."""
    assert faults_of(CLAIMED, {}) == []
    assert faults_of(CLAIMED, {OTHER: [(*KCAT, True)]}) == []
    moved = merge(CLAIMED, {OTHER: [(*JAVA, True)]})
    assert moved == {Claim(JAVA, ONE, True), Claim(KCAT, ONE, False), Claim(JAVA, OTHER, True)}
