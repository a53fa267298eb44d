//! Where schemas and examples are: folders, or those of installed packs.

use std::path::{Path, PathBuf};

use pintle_packs::{PackName, Packs};
use pintle_positions::{Located, Location};

use super::{
    Given,
    error::SettingError,
    table::{EXAMPLES_DIR, SCHEMAS_DIR},
    value::AssetFolder,
};

/// Where schemas and examples are.
pub struct AssetFolders {
    pub schemas_dir: Option<PathBuf>,
    pub examples_dir: Option<PathBuf>,
    pub packs: Vec<PackInUse>,
}

/// A pack that a setting names. Whether it is installed is found out when the assets are loaded.
#[derive(Clone, Debug)]
pub struct PackInUse {
    pub packs: Packs,
    pub name: PackName,
    pub set_at: Location,
}

impl AssetFolders {
    /// Decides on the folders.
    pub fn decide(
        given: &Given,
        root: &Path,
        state_dir: Option<&Path>,
    ) -> Result<Self, Located<SettingError>> {
        let schemas = given.get(&SCHEMAS_DIR)?;
        let examples = match (given.get(&EXAMPLES_DIR)?, &schemas) {
            // The examples of a pack belong to its schemas.
            (AssetFolder::InRoot(_), AssetFolder::Pack(name)) => AssetFolder::Pack(name.clone()),
            (examples, _) => examples,
        };
        let mut packs = Vec::new();
        let mut find = |folder, set_at: Location, of_pack: fn(&Packs, &PackName) -> PathBuf| {
            Ok(match folder {
                AssetFolder::Set(folder) => Some(folder),
                AssetFolder::InRoot(folder) => Some(root.join(folder)).filter(|folder| folder.is_dir()),
                AssetFolder::Pack(name) => {
                    let state_dir = state_dir.ok_or_else(|| set_at.error(SettingError::PackNeedsState))?;
                    let installed = Packs::of_state(state_dir);
                    let folder = of_pack(&installed, &name);
                    packs.push(PackInUse { packs: installed, name, set_at });
                    Some(folder)
                }
            })
        };
        let schemas_dir = find(schemas, given.location(&SCHEMAS_DIR), Packs::schemas_of)?;
        let examples_dir = find(examples, given.location(&EXAMPLES_DIR), Packs::examples_of)?;
        Ok(Self { schemas_dir, examples_dir, packs })
    }
}
