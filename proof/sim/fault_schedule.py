"""What goes wrong, and when."""

from __future__ import annotations

from penstock.queue.log.layout import LOG
from proof.sim.inode import Inode
from proof.sim.promises import Account
from proof.sim.world import World


class Chaos:
    """Strikes a world once a step, at the rates of its profile."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._down_for = 0
        self._full_for = 0

    def strike(self) -> None:
        world, profile, chance = self._world, self._world.profile, self._world.chance
        self._disk_faults()
        if chance.random() < profile.forget:
            world.disk.forget(chance)
        if world.node is None:
            self._down_for -= 1
            if self._down_for <= 0:
                world.start()
            return
        luck = chance.random()
        cut_power = profile.cut_power + (profile.cut_power_early if self._is_first_sync_due else 0.0)
        if luck < cut_power:
            world.cut_power()
            self._down_for = chance.randint(0, 3)
        elif luck < cut_power + profile.kill:
            world.kill()
            self._down_for = chance.randint(0, 3)
        elif luck < cut_power + profile.kill + profile.stop or (world.node.stopped and chance.random() < 0.1):
            world.stop()
        for link in list(world.links.values()):
            if chance.random() < profile.break_link:
                world.break_link(link)
        if chance.random() < profile.flip:
            self._flip()

    @property
    def _is_first_sync_due(self) -> bool:
        """Whether a partition has written records and none of them is durable."""
        node = self._world.node
        logs = [partition.log for partition in node.store.open.values()] if node is not None else []
        return any(log.durable.offset == 0 < log.written.offset and not log.config.in_memory for log in logs)

    def _disk_faults(self) -> None:
        profile, chance, faults = self._world.profile, self._world.chance, self._world.disk.faults
        faults.rates = {}
        if chance.random() < profile.failing_sync:
            self._world.note("syncs fail")
            faults.rates["sync"] = 0.5
            faults.rates["sync_folder"] = 0.3
        if chance.random() < profile.failing_call:
            faults.rates[chance.choice(("read", "write", "create", "names", "open", "remove", "truncate", "size"))] = (
                0.3
            )
        if self._full_for > 0:
            self._full_for -= 1
            if self._full_for == 0:
                faults.room = None
        elif chance.random() < profile.full_disk:
            self._world.note("disk full")
            faults.room = chance.choice((0, 100, 2000))
            self._full_for = chance.randint(1, 20)

    def _flip(self) -> None:
        """Flip one bit of a batch that is durable."""
        world = self._world
        accounts = [a for a in world.ledger.accounts.values() if not a.topic.is_going and not a.topic.in_memory]
        if not accounts:
            return
        account: Account = world.chance.choice(accounts)
        batches = world.imager.durable(account.folder)
        acked = [base for base in batches if base in account.acked]
        if not acked:
            return
        base = world.chance.choice(acked)
        stored = batches[base]
        node = world.disk.folder(account.folder).names.get(stored.file)
        if isinstance(node, Inode) and stored.file.endswith(LOG):
            position = stored.position + world.chance.randrange(stored.header.size)
            account.damaged[base] = stored.header.next_offset
            node.flip(position, world.chance.randrange(8))
            world.note(f"flipped a bit of {account.name} at offset {base}, position {position}")
