//! A command to run, and how it ended.

use std::{ffi::OsString, io, path::PathBuf, time::Duration};

use crate::kept::{Keep, Kept};

/// How long a command may take to end after SIGTERM.
pub const DEFAULT_GRACE: Duration = Duration::from_secs(2);

/// A command to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandSpec {
    /// The program's absolute path. There is no shell and no search in PATH.
    pub program: PathBuf,
    /// The arguments after the program's name.
    pub arguments: Vec<OsString>,
    /// The whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The working folder.
    pub folder: PathBuf,
    /// Standard input; without it, it is the null device.
    pub stdin: Option<Vec<u8>>,
    /// How long the command and what it started may take to end after SIGTERM, before SIGKILL.
    pub grace: Duration,
    /// How much of standard output is kept.
    pub keep_stdout: Keep,
    /// How much of standard error is kept.
    pub keep_stderr: Keep,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By a signal of this number.
    Signal(i32),
}

/// The result of a command that has ended with its whole process tree.
#[derive(Debug)]
pub struct Finished {
    /// How the command itself ended.
    pub exit: Exit,
    /// What it and its descendants wrote to standard output.
    pub stdout: Kept,
    /// What they wrote to standard error.
    pub stderr: Kept,
}

/// Why a command could not be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartFailure {
    /// There is no such program.
    #[error("the program does not exist")]
    Missing,
    /// The program's path is that of a folder.
    #[error("the program is a folder")]
    IsFolder,
    /// It is not executable.
    #[error("the program is not executable")]
    NotExecutable,
    /// The file is not a program, or the interpreter that it names does not exist.
    #[error("the file is no program that this system can run, or its interpreter does not exist")]
    NotAProgram,
    /// The working folder does not exist.
    #[error("the working folder does not exist")]
    NoFolder,
    /// An argument or a variable contains a NUL byte, which the system does not allow.
    #[error("an argument holds a NUL byte")]
    NulByte,
    /// Arguments and environment together exceed the limit of the system.
    #[error("the arguments are longer than the system takes")]
    TooLong,
    /// Anything else, by the system's error number.
    #[error("the system refuses to start it: {}", io::Error::from_raw_os_error(*.0))]
    Other(i32),
}

/// Why a command has no result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// It was not started.
    #[error(transparent)]
    Start(#[from] StartFailure),
    /// Its supervisor died first. The command was killed all the same.
    #[error("the process that supervised the command was killed")]
    SupervisorLost,
    /// The system failed.
    #[error("the command could not be supervised: {0}")]
    System(#[from] io::Error),
}
