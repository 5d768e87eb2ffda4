# Makes a tree with a built program and uncommitted changes in the working directory.
git init --quiet
echo /bin/ >.gitignore
echo old | tee README.md gone.md ignored >/dev/null
mkdir bin docs
echo 'echo devcluster "$@"' >bin/devcluster
chmod +x bin/devcluster
git add --force .gitignore README.md gone.md ignored
git -c user.name=a -c user.email=a@example.com commit --quiet --message=a
echo new >README.md
echo added >docs/added.md
rm gone.md
echo ignored >>.gitignore
