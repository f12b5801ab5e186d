// What the commands end with besides 0, in one place, as docs/terminal.md lists them.

/** Something failed: a Task, a start, a model that was asked; a Trace that has violations. */
export const EXIT_FAILED = 1;
/** No server, or one that refuses. */
export const EXIT_UNREACHABLE = 2;
/** The command line is wrong (sysexits EX_USAGE). */
export const EXIT_USAGE = 64;
/** What was asked for cannot be written (sysexits EX_IOERR). */
export const EXIT_IO = 74;
/** Another server has the data directory (sysexits EX_TEMPFAIL). */
export const EXIT_HELD = 75;
/** The configuration is wrong (sysexits EX_CONFIG). */
export const EXIT_CONFIG = 78;
/** As a shell has it for a command that Ctrl-C ended. */
export const EXIT_INTERRUPTED = 130;
