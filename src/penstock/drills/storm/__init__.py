"""The storm: real clients of three kinds on a broker that is killed, paused, cut off and starved, and the verdict."""
