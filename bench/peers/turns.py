"""Engines in processes of their own, which run in turn: an object of JSON per line in and out."""

import json
import random
import signal
import subprocess

import rounds


class Process:
    """An engine's process, or ours."""

    def __init__(self, command):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.pid = self.process.pid

    def pids(self):
        """All processes of the engine."""
        return [self.pid]

    def ask(self, line=None):
        try:
            if line is not None:
                print(line, file=self.process.stdin, flush=True)
            return json.loads(self.process.stdout.readline())
        except (OSError, ValueError):
            return {"skipped": "its process ended"}

    def pause(self):
        """Also stops threads that wait in a loop, which would take cores from the next engine for up to 0.2 s."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def close(self):
        self.resume()
        self.process.stdin.close()
        self.process.wait()


def time_in_turn(running, count, seconds, turn=0.2):
    """(times by name, a warning or ""). running: Process by name; seconds(name, runs): what a run of it takes.

    `count` rounds, each in another order. Each turn runs twice `turn` seconds, the first half of it untimed: an engine
    finds cold caches and sleeping threads, which a program that goes on with it does not."""
    shuffled = random.Random(1)
    counts, times = {}, {name: [] for name in running}
    watch = rounds.Interference([pid for process in running.values() for pid in process.pids()])
    for number in range(count + 1):  # the first warms up
        order = list(running)
        shuffled.shuffle(order)
        for name in order:
            running[name].resume()
            if number == 0:
                seconds(name, 3 if seconds(name, 1) < 0.3 else 1)
                counts[name] = max(1, min(200, round(turn / seconds(name, 1))))
            else:
                if counts[name] > 1:
                    seconds(name, counts[name])
                times[name].append(seconds(name, counts[name]))
            running[name].pause()
    return times, watch.warning()
