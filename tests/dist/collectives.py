"""What tests of several processes ask of the program."""
import subprocess


def build_has_gloo(program):
    """Whether its build has collectives for several processes; says so where it has none."""
    doctor = subprocess.run([str(program), "doctor"], capture_output=True, text=True)
    if "several processes: gloo" in doctor.stdout:
        return True
    print("the build has no gloo")
    return False
