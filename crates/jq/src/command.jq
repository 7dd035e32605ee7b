def input: native_input;
def input_filename: null;
def debug: native_debug;
def debug(msgs): (msgs | native_debug | empty), .;
def stderr: native_stderr;
def halt_error($code): native_last_words | halt($code);
def halt_error: halt_error(5);
