// SPDX-License-Identifier: Apache-2.0

// The termination signals of Windows.

package signals

import "os"

var shutdownSignals = []os.Signal{os.Interrupt}
