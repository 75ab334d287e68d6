"""What kind of world a seed makes: how large, how fast, and what goes wrong in it."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from penstock.config.broker import BrokerConfig


@dataclass(frozen=True, slots=True)
class Profile:
    """Rates are per step."""

    steps: int
    producers: int
    consumers: int
    members: int
    newer_members: int
    transactors: int
    rereaders: int
    cut_power: float
    cut_power_early: float  # added while a partition waits for its first sync
    kill: float
    stop: float
    break_link: float
    full_disk: float
    failing_sync: float
    failing_call: float
    flip: float
    forget: float
    sync_speed: float
    load_speed: float
    config: BrokerConfig


def make_profile(chance: Random, *, damage: bool = False) -> Profile:
    """Some seeds are calm, some have one kind of fault, some have all."""

    def sometimes(rate: float, often: float = 0.5) -> float:
        return rate if chance.random() < often else 0.0

    config = BrokerConfig(
        auto_create_topics=False,
        checkpoint_ms=chance.choice((10, 100, 1000)),
        checkpoint_bytes=chance.choice((500, 3000, 100_000)),
        retention_check_ms=chance.choice((100, 1000, 30_000)),
        inflight_bytes_max_connection=chance.choice((1000, 5000, 10**6)),
        inflight_bytes_max=chance.choice((4000, 10**6)),
        memory_reserve=chance.choice((3, 20, 1000)),
        group_session_ms_min=1,
        consumer_session_ms=chance.choice((1_000, 5_000)),
        group_initial_delay_ms=chance.choice((0, 50, 200)),
        offsets_check_ms=chance.choice((200, 600_000)),
        fetch_bytes_max=chance.choice((1000, 10**6)),
        fetch_bytes_step=chance.choice((1000, 10**6)),
        loads_max=chance.choice((1, 2, 16)),
    )
    return Profile(
        steps=chance.randint(30, 120),
        producers=chance.randint(1, 3),
        consumers=chance.randint(1, 2),
        members=chance.choice((0, 2, 3, 5)),
        newer_members=chance.choice((0, 0, 2, 4)),
        transactors=chance.choice((0, 1, 3)),
        rereaders=chance.choice((0, 1, 3)),
        cut_power=0.0 if damage else sometimes(chance.choice((0.02, 0.08)), 0.7),
        cut_power_early=0.0 if damage else sometimes(0.3, 0.4),
        kill=sometimes(0.03),
        stop=sometimes(0.02),
        break_link=sometimes(0.1),
        full_disk=0.0 if damage else sometimes(0.05, 0.3),
        failing_sync=0.0 if damage else sometimes(0.03, 0.3),
        failing_call=0.0 if damage else sometimes(0.03, 0.2),
        flip=0.08 if damage else 0.0,
        forget=sometimes(chance.choice((0.1, 0.5)), 0.8),
        sync_speed=chance.choice((0.1, 0.4, 0.9)),
        load_speed=chance.choice((0.1, 0.4, 0.9)),
        config=config,
    )
