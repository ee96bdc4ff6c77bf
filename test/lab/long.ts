// How much tests of chance do in `make lab`, unless LONG says otherwise. Imported before them.
process.env.LONG ??= '10';
