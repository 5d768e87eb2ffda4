// SPDX-License-Identifier: Apache-2.0

// The data folder: creating, locking and removing it, and its layout.

package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// dataDir is a data folder that this process has locked.
type dataDir struct {
	layout
	lock *os.File
	// fresh is true if the folder was empty: there is no data of an earlier cluster to
	// lose.
	fresh bool
}

// openDataDir creates the folder if it does not exist, or a temporary one for "", and
// locks it. It refuses a folder with other files in it, because the contents of a data
// folder are removed later.
func openDataDir(path string) (*dataDir, error) {
	var err error
	if path == "" {
		path, err = os.MkdirTemp("", "devcluster-")
	} else if path, err = filepath.Abs(path); err == nil {
		err = os.MkdirAll(path, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("-data-dir: %w", err)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("-data-dir: %w", err)
	}
	d := &dataDir{layout: layout(path), fresh: len(entries) == 0}
	if _, err := os.Stat(d.lockFile()); errors.Is(err, fs.ErrNotExist) && !d.fresh {
		return nil, fmt.Errorf("-data-dir %s: the folder is not empty and was not created by devcluster; choose another", path)
	}
	if err := d.acquire(); err != nil {
		return nil, err
	}
	return d, nil
}

// acquire locks the folder for the life of this process. The kernel releases the lock in
// whatever way the process ends.
func (d *dataDir) acquire() error {
	f, err := os.OpenFile(d.lockFile(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("-data-dir: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		holder, _ := os.ReadFile(d.lockFile()) // only for the message
		_ = f.Close()
		return fmt.Errorf("-data-dir %s: in use by a running devcluster (process %s)", d.dir(), bytes.TrimSpace(holder))
	}
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = fmt.Fprintln(f, os.Getpid())
	}
	if err != nil {
		_ = f.Close()
		return fmt.Errorf("locking %s: %w", d.lockFile(), err)
	}
	d.lock = f
	return nil
}

// used reports whether a cluster has run in this folder before.
func (d *dataDir) used() bool {
	_, err := os.Stat(d.etcdData())
	return err == nil
}

// remove removes the files of a cluster from the folder, and the folder if it is then
// empty. With keepLogs, it leaves the logs, and the folder with them.
func (d *dataDir) remove(keepLogs bool) error {
	paths := []string{d.etcdData(), d.config(), d.pki(), d.adminKubeconfig()}
	if !keepLogs {
		entries, err := os.ReadDir(d.dir())
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if strings.HasPrefix(entry.Name(), "audit") { // including rotated ones: audit-<time>.log
				paths = append(paths, d.path(entry.Name()))
			}
		}
		paths = append(paths, d.logs(), d.lockFile())
	}
	var errs []error
	for _, path := range paths {
		errs = append(errs, os.RemoveAll(path))
	}
	if !keepLogs {
		// A file of the user in the folder keeps the folder.
		if err := os.Remove(d.dir()); err != nil && !errors.Is(err, syscall.ENOTEMPTY) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// release unlocks the folder.
func (d *dataDir) release() { _ = d.lock.Close() }

// layout is the absolute path of a data folder, and knows the files and folders in it.
type layout string

func (l layout) path(elem ...string) string {
	return filepath.Join(append([]string{string(l)}, elem...)...)
}

func (l layout) dir() string                     { return string(l) }
func (l layout) lockFile() string                { return l.path("lock") }                        // of a running cluster
func (l layout) adminKubeconfig() string         { return l.path("kubeconfig") }                  // the administrator's
func (l layout) auditLog() string                { return l.path("audit.log") }                   // writes to the API
func (l layout) logs() string                    { return l.path("logs") }                        // of the components
func (l layout) etcdData() string                { return l.path("etcd") }                        // etcd's data folder
func (l layout) config() string                  { return l.path("config") }                      // of the components
func (l layout) auditPolicy() string             { return l.path("config", "audit-policy.yaml") } // of kube-apiserver
func (l layout) kwokStages() string              { return l.path("config", "kwok-stages.yaml") }  // for nodes and Pods
func (l layout) pki() string                     { return l.path("pki") }                         // keys
func (l layout) serviceAccountKey() string       { return l.path("pki", "sa.key") }               // signs tokens
func (l layout) serviceAccountPublicKey() string { return l.path("pki", "sa.pub") }               // verifies them

// log is the file with a component's standard output and standard error.
func (l layout) log(component string) string { return l.path("logs", component+".log") }

// componentKubeconfig is the kubeconfig of a component, with its own identity.
func (l layout) componentKubeconfig(component string) string {
	return l.path("config", component+".kubeconfig")
}

// cert is a certificate, and key the private key of that name.
func (l layout) cert(name string) string { return l.path("pki", name+".crt") }
func (l layout) key(name string) string  { return l.path("pki", name+".key") }
