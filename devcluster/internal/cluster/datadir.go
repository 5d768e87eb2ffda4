// SPDX-License-Identifier: Apache-2.0

// The data folder: creating, locking and removing it, and its layout.

package cluster

import (
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
	Layout
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
		return nil, fmt.Errorf("-%s: %w", flagDataDir, err)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("-%s: %w", flagDataDir, err)
	}
	d := &dataDir{Layout: NewLayout(path), fresh: len(entries) == 0}
	if _, err := os.Stat(d.Lock()); errors.Is(err, fs.ErrNotExist) && !d.fresh {
		return nil, fmt.Errorf("-%s %s: the folder is not empty and was not created by devcluster; choose another", flagDataDir, path)
	}
	if err := d.acquire(); err != nil {
		return nil, err
	}
	return d, nil
}

// acquire locks the folder for the life of this process. The kernel releases the lock in
// whatever way the process ends.
func (d *dataDir) acquire() error {
	f, err := os.OpenFile(d.Lock(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("-%s: %w", flagDataDir, err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		holder, _ := os.ReadFile(d.Lock()) // only for the message
		_ = f.Close()
		return fmt.Errorf("-%s %s: in use by a running devcluster (process %s)", flagDataDir, d.Dir(), strings.TrimSpace(string(holder)))
	}
	if err != nil {
		_ = f.Close()
		return fmt.Errorf("locking %s: %w", d.Lock(), err)
	}
	if err := f.Truncate(0); err != nil {
		_ = f.Close()
		return err
	}
	if _, err = fmt.Fprintln(f, os.Getpid()); err != nil {
		_ = f.Close()
		return err
	}
	d.lock = f
	return nil
}

// used reports whether a cluster has run in this folder before.
func (d *dataDir) used() bool {
	_, err := os.Stat(d.EtcdData())
	return err == nil
}

// remove removes the files of a cluster from the folder, and the folder if it is then
// empty. With keepLogs, it leaves the logs, and the folder with them.
func (d *dataDir) remove(keepLogs bool) error {
	paths := []string{d.EtcdData(), d.Config(), d.PKI(), d.Kubeconfig()}
	if !keepLogs {
		entries, err := os.ReadDir(d.Dir())
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if strings.HasPrefix(entry.Name(), "audit") { // including rotated ones: audit-<time>.log
				paths = append(paths, d.path(entry.Name()))
			}
		}
		paths = append(paths, d.Logs(), d.Lock())
	}
	var errs []error
	for _, path := range paths {
		errs = append(errs, os.RemoveAll(path))
	}
	if !keepLogs {
		// A file of the user in the folder keeps the folder.
		if err := os.Remove(d.Dir()); err != nil && !errors.Is(err, syscall.ENOTEMPTY) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// release unlocks the folder.
func (d *dataDir) release() { _ = d.lock.Close() }

// Layout returns the paths of the files and folders in a cluster's data folder.
type Layout struct {
	dir string
}

// NewLayout returns the layout of the folder dir, which should be an absolute path.
func NewLayout(dir string) Layout { return Layout{dir: dir} }

// Dir is the data folder itself.
func (l Layout) Dir() string { return l.dir }

// Lock is the file that a running cluster locks.
func (l Layout) Lock() string { return l.path("lock") }

// Kubeconfig is the administrator's kubeconfig, unless another path was requested.
func (l Layout) Kubeconfig() string { return l.path("kubeconfig") }

// AuditLog has a line of JSON for each write to the API.
func (l Layout) AuditLog() string { return l.path("audit.log") }

// Logs is the folder of the components' logs.
func (l Layout) Logs() string { return l.path("logs") }

// Log is the file with a component's standard output and standard error.
func (l Layout) Log(component string) string { return l.path("logs", component+".log") }

// EtcdData is etcd's data folder.
func (l Layout) EtcdData() string { return l.path("etcd") }

// Config is the folder of the files that components read when they start.
func (l Layout) Config() string { return l.path("config") }

// AuditPolicy is the audit policy of kube-apiserver.
func (l Layout) AuditPolicy() string { return l.path("config", "audit-policy.yaml") }

// KwokStages is the file of the stages that KWOK applies to nodes and Pods.
func (l Layout) KwokStages() string { return l.path("config", "kwok-stages.yaml") }

// ComponentKubeconfig is the kubeconfig of a component, with its own identity.
func (l Layout) ComponentKubeconfig(component string) string {
	return l.path("config", component+".kubeconfig")
}

// PKI is the folder of keys and certificates.
func (l Layout) PKI() string { return l.path("pki") }

// Cert is a certificate in the folder PKI.
func (l Layout) Cert(name string) string { return l.path("pki", name+".crt") }

// Key is the private key of the certificate of the same name.
func (l Layout) Key(name string) string { return l.path("pki", name+".key") }

// ServiceAccountKey is the private key that signs service account tokens.
func (l Layout) ServiceAccountKey() string { return l.path("pki", "sa.key") }

// ServiceAccountPublicKey is the public key that verifies service account tokens.
func (l Layout) ServiceAccountPublicKey() string { return l.path("pki", "sa.pub") }

func (l Layout) path(elem ...string) string {
	return filepath.Join(append([]string{l.dir}, elem...)...)
}
