//! A manifest at work.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use pintle_contract::{Access, ErrorCode, Fault, Permission, Stage, ToolDefinition, WorkspacePath};
use pintle_process::{CommandSpec, Keep, Spawner};
use pintle_root::Root;
use pintle_schema::{CompiledSchema, SchemaRegistry};
use pintle_tool::{
    Boxed, CallContext, DynTool, Prepared, Progress, ProgressEvent, Running, Stream, ToolTimeout,
};
use serde_json::{Map, Value, json};

use crate::{
    environment,
    manifest::Manifest,
    outcome,
    parallel::{ParallelLimit, ParallelLimits},
};

/// How long a command may run whose manifest does not set it: a build or a test takes longer than most tools.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);

/// Where commands run.
pub struct Workplace {
    /// The root, without links.
    pub root: PathBuf,
    /// What starts programs.
    pub spawner: Spawner,
    /// How many calls of each tool run at the same time.
    pub limits: ParallelLimits,
    /// Called when a command and all that it started have ended: it may have changed anything in the root.
    pub ended: Box<dyn Fn() + Send + Sync>,
}

/// A tool that runs a program.
pub struct CommandTool {
    manifest: Manifest,
    workplace: Arc<Workplace>,
    output: Option<Arc<CompiledSchema>>,
    parallel: Arc<ParallelLimit>,
    permissions: [Permission; 2],
}

impl CommandTool {
    /// The tool of a manifest.
    pub fn erased(manifest: Manifest, workplace: Arc<Workplace>) -> Result<Arc<dyn DynTool>, Fault> {
        let schema = &manifest.definition.output_schema;
        let output = manifest.has_output.then(|| SchemaRegistry::default().load(schema)).transpose()?;
        let parallel = workplace.limits.of(manifest.name(), manifest.max_parallel);
        let permissions = [
            Permission::Named(format!("run:{}", manifest.name()).into()),
            Permission::Enter(manifest.cwd.clone()),
        ];
        Ok(Arc::new(Self { manifest, workplace, output, parallel, permissions }))
    }

    /// The program with these arguments, in its folder and environment.
    fn command(&self, arguments: &Map<String, Value>) -> Result<CommandSpec, Fault> {
        let manifest = &self.manifest;
        let stdin = manifest.takes_stdin.then(|| serde_json::to_vec(arguments)).transpose();
        let stdin = stdin.map_err(|_| Fault::internal("the arguments could not be written as JSON"))?;
        Ok(CommandSpec {
            program: manifest.program.clone(),
            arguments: manifest.template.fill(arguments)?,
            environment: environment::of_command(std::env::vars_os(), &manifest.env),
            folder: self.workplace.root.join(manifest.cwd.as_str()),
            stdin,
            grace: manifest.grace,
            keep_stdout: match manifest.has_output {
                true => Keep::whole(outcome::LARGEST_RESULT),
                false => Keep::ends(manifest.max_output),
            },
            keep_stderr: Keep::ends(manifest.max_output),
        })
    }

    /// The working folder without links. It may not be denied either, if a link leads to it.
    fn enter(&self, folder: &Path, call: &CallContext) -> Result<PathBuf, Fault> {
        let folder = within_root(folder, &self.workplace.root)?;
        let inside = folder.strip_prefix(&self.workplace.root).ok().and_then(Path::to_str);
        if let Some(Ok(inside)) = inside.map(WorkspacePath::parse) {
            call.caller().require(&Access::Enter(inside))?;
        }
        Ok(folder)
    }

    /// Why the working folder cannot be used. If a link leads to where the caller may not work, it is the same refusal
    /// whatever exists there.
    fn unless_hidden(&self, fault: Fault, call: &CallContext) -> Fault {
        let Ok(root) = Root::open(&self.workplace.root) else { return fault };
        let paths = root.follow_hypothetically(&self.manifest.cwd);
        let mut refusals =
            paths.into_iter().map(|path| call.caller().require(&Access::Enter(path))).filter_map(Result::err);
        refusals.next().unwrap_or(fault)
    }

    async fn run(&self, mut command: CommandSpec, call: CallContext) -> Result<pintle_tool::Answer, Fault> {
        let name = self.manifest.name();
        command.folder =
            self.enter(&command.folder, &call).map_err(|fault| self.unless_hidden(fault, &call))?;
        // All of it is held until nothing is left of the command, also when nobody waits for it any more.
        let held = (call.clone(), Ended(Arc::clone(&self.workplace)));
        let on_line = report_lines(call.progress().clone());
        let finished = self.workplace.spawner.run(command, on_line, held).await;
        let finished =
            finished.map_err(|error| outcome::fault(name, &self.manifest.written_program, &error))?;
        let (name, output) = (name.to_owned(), self.output.clone());
        call.compute(move |_| outcome::answer(&name, &finished, output.as_deref())).await?
    }
}

impl DynTool for CommandTool {
    fn definition(&self) -> &ToolDefinition {
        &self.manifest.definition
    }

    fn permissions(&self) -> &[Permission] {
        &self.permissions
    }

    fn timeout(&self) -> Option<ToolTimeout> {
        Some(self.manifest.timeout.map_or(ToolTimeout::Default(DEFAULT_TIMEOUT), ToolTimeout::Set))
    }

    fn runs_process(&self) -> bool {
        true
    }

    fn turn(&self) -> Option<Boxed<'_, Box<dyn Send + Sync>>> {
        Some(Box::pin(async {
            let permit: Box<dyn Send + Sync> = Box::new(self.parallel.acquire().await);
            permit
        }))
    }

    fn may_be_task(&self) -> bool {
        true
    }

    fn prepare<'a>(&'a self, arguments: Value) -> Result<Prepared<'a>, Fault> {
        let Value::Object(mut arguments) = arguments else {
            return Err(Fault::invalid(Stage::Arguments, "the arguments are no object"));
        };
        for (name, default) in &self.manifest.defaults {
            arguments.entry(name).or_insert_with(|| default.clone());
        }
        let command = self.command(&arguments)?;
        let run = move |call: CallContext| -> Running<'a> { Box::pin(self.run(command, call)) };
        Ok(Prepared { run: Box::new(run) })
    }
}

/// Says when a command has ended, however it did.
struct Ended(Arc<Workplace>);

impl Drop for Ended {
    fn drop(&mut self) {
        (self.0.ended)();
    }
}

/// Passes the lines of a command's error output on as progress.
fn report_lines(progress: Progress) -> impl FnMut(&str) + Send + 'static {
    let mut count = 0_u32;
    move |line| {
        count = count.saturating_add(1);
        if progress.is_wanted() {
            progress.report(ProgressEvent {
                progress: count.into(),
                total: None,
                message: line.to_owned(),
                stream: Stream::Stderr,
                phase: "run",
            });
        }
    }
}

/// The working folder without links, if it is in the root.
fn within_root(folder: &Path, root: &Path) -> Result<PathBuf, Fault> {
    let failed = |problem: String, reason: &str, remedy: &str| {
        Err(Fault::new(ErrorCode::UpstreamFailed, problem).details(json!({ "reason": reason })).hint(remedy))
    };
    let shown = folder.strip_prefix(root).unwrap_or(folder).display().to_string();
    match folder.canonicalize() {
        Err(error) => failed(
            format!("the working folder /{shown} cannot be used: {error}"),
            "no_folder",
            "create the folder, or change `cwd` in the manifest",
        ),
        Ok(real) if !real.starts_with(root) => failed(
            format!("the working folder /{shown} is a link that leads out of the root"),
            "folder_outside",
            "put a folder in the place of the link, or change `cwd` in the manifest",
        ),
        Ok(real) if !real.is_dir() => failed(
            format!("the working folder /{shown} is not a folder"),
            "no_folder",
            "put a folder in its place, or change `cwd` in the manifest",
        ),
        Ok(real) => Ok(real),
    }
}
